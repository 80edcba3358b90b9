"""Successive halving on made problems whose order is known."""

import pytest

from accord.tuning.trials._halving import as_rank, successive_halving


def test_the_best_third_of_each_rung_goes_on():
    seen = []

    def evaluate(going, rung):
        seen.append(sorted(going))
        return {number: (float(number),) for number in going}

    ranked = successive_halving(range(9), 3, evaluate)
    assert seen == [list(range(9)), [6, 7, 8], [8]]
    assert ranked == [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_a_late_bloomer_wins_if_it_survives_the_first_rung():
    early = {0: 5.0, 1: 4.0, 2: 3.0, 3: 2.0, 4: 1.0, 5: 0.0}
    late = {0: 0.1, 1: 0.9}
    ranked = successive_halving(range(6), 2, lambda going, rung: {n: ((early, late)[rung][n],) for n in going})
    assert ranked[:3] == [1, 0, 2]


def test_some_candidates_always_go_on():
    reached = {}

    def evaluate(going, rung):
        reached.update(dict.fromkeys(going, rung))
        return {number: (float(number),) for number in going}

    ranked = successive_halving(range(6), 3, evaluate, always=[0])
    assert reached[0] == 2 and ranked[:2] == [5, 0]


@pytest.mark.parametrize("done", [0, 1, 2])
def test_candidates_without_time_end_at_the_rung_before(done):
    def evaluate(going, rung):
        return {number: (float(number),) for number in (going if rung == 0 else going[:done])}

    ranked = successive_halving(range(6), 2, evaluate)
    assert ranked == [5, 4, 3, 2, 1, 0]


def test_a_missing_number_ranks_lowest():
    assert as_rank(None, 1.0) < as_rank(-1e9, 0.0)
    assert as_rank(float("nan")) < as_rank(0.0)
