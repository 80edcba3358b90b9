"""Fields in parts have the beliefs and joint labels that one process finds."""

import pytest
from distributed.in_parts import run_in_parts
from distributed.solving_cases import check_infeasible, check_solving
from support.matrix import matrix


@pytest.mark.parametrize("ranks", [2, matrix(4)])
def test_beliefs_and_labels_are_those_of_one_process(ranks):
    changed = run_in_parts(check_solving, ranks)
    assert min(changed) > 20, "decoding changes the best states of single nodes"


def test_contradictions_are_refused_by_all_processes():
    assert all(run_in_parts(check_infeasible, 2))
