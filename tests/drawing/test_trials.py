"""The picture of a search."""

import pytest

from accord.drawing import draw_trials
from accord.tuning import TrialResult


def made_trial(part, number, rung, score, at):
    return TrialResult(part, number, rung, 10, score, 1.0, 2.0, "raw", {}, at=at)


@pytest.mark.parametrize("count", [0, 1, 6])
def test_every_search_can_be_drawn(count):
    """Also one without trials, and one with a trial that has no score."""
    trials = [made_trial("node", n, n % 3, 0.1 * n if n else None, float(n)) for n in range(count)]
    trials += [made_trial("pair", 2001, 0, 0.7, 9.0)] if count > 1 else []
    assert draw_trials(trials).startswith(b"\x89PNG")
