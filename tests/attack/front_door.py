"""Calls of public functions with broken arguments, in bulk, beyond those of `test_bad_input.py`."""

from pathlib import Path

import torch
from attack.harness.trial import Trial
from support.fuzzing import TARGETS, draw_case
from test_bad_input import is_rejected

CALLS = 100  # in one case
FIRST = 10**6  # the test suite uses lower numbers
SLOW = {"NodeClassifier.fit": 10}  # calls in one case, where a call takes longer


class FrontDoor:
    """All public functions in turn."""

    def __init__(self, folder: Path) -> None:
        torch.set_num_threads(1)

    def attempt(self, trial: Trial) -> None:
        """A hundred calls of one function."""
        name = list(TARGETS)[trial.number % len(TARGETS)]
        for _ in range(SLOW.get(name, CALLS)):
            case = draw_case(name, trial.rng.randrange(FIRST, 10**12))
            trial.tried["fuzzed calls"] += 1
            try:
                is_rejected(case)
            except AssertionError as error:
                trial.fail(str(error)[:1500])
