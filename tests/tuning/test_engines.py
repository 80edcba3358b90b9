"""A search by other processes, of Ray or of this machine, equals a search in this process.

tests/app/commands/test_tune.py has the command, with four workers.
"""

import pytest
from support.made_searches import BUDGET, SPACE, made_problem, table

from accord.distributed.engines import ProcessEngine, RayEngine
from accord.tuning import search


def rounded(found):
    """The table with losses as far as the number of threads does not change them."""
    return [row | {"loss": pytest.approx(row["loss"], abs=1e-5)} for row in table(found)]


@pytest.fixture(scope="module")
def whole():
    return search(made_problem(), SPACE, BUDGET)


def test_a_search_by_ray_equals_a_local_one(whole, ray_cluster):
    with RayEngine(2) as engine:
        found = search(made_problem(), SPACE, BUDGET, engine=engine)
    assert table(found) == rounded(whole) and found.recipe == whole.recipe


def test_a_search_by_processes_of_this_machine_equals_one_in_this_process(whole):
    with ProcessEngine(2) as engine:
        found = search(made_problem(), SPACE, BUDGET, engine=engine)
    assert table(found) == rounded(whole) and found.recipe == whole.recipe
