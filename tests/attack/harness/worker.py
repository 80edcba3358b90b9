"""One attack in its own process: cases one after another, each reported as a line of json."""

import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Protocol, TextIO

from attack.harness.trial import Skip, Trial


class Attack(Protocol):
    """What every attack offers."""

    def attempt(self, trial: Trial) -> None:
        """Try one case."""
        ...


# Module and class by name; each is imported only in its own process.
ATTACKS = {
    "kills": ("attack.kills", "Kills"),
    "full-disk": ("attack.full_disk", "FullDisk"),
    "damaged-runs": ("attack.damaged_runs", "DamagedRuns"),
    "graph-files": ("attack.graph_files", "GraphFiles"),
    "front-door": ("attack.front_door", "FrontDoor"),
    "kernel": ("attack.kernel", "Kernel"),
    "staged": ("attack.harness.staged", "Staged"),
}
SKIPPED = 3  # exit code of a worker whose attack cannot run here


def build(name: str, folder: Path) -> Attack:
    """An attack with a folder for the files that all attacks share."""
    module, kind = ATTACKS[name]
    make: Callable[[Path], Attack] = getattr(import_module(module), kind)
    return make(folder)


def run_case(attack: Attack, name: str, seed: int, number: int, folder: Path) -> Trial:
    """One case; an exception of the attack itself counts as a failure, so that it is seen."""
    own = folder / f"case {number}"
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    trial = Trial(name, seed, number, own)
    try:
        attack.attempt(trial)
    except Exception:
        trial.fail(f"the attack itself failed: {traceback.format_exc()[-1500:]}")
    shutil.rmtree(own, ignore_errors=True)
    return trial


def work(name: str, seed: int, first: int, step: int, seconds: float, one: bool, folder: str) -> int:
    """Cases `first`, `first + step`, ... for so many seconds, or only the first; returns the exit code.

    Lines on standard output: {"case": 3} when a case begins; {"done": 3, "tried": {..}, "failures": [..]} at its end.
    """
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else prints must not get between the lines
    own = tempfile.mkdtemp(prefix=f"{name}-", dir=folder)
    try:
        try:
            attack = build(name, Path(folder))
        except Skip as reason:
            tell(lines, skipped=str(reason))
            return SKIPPED
        began = time.monotonic()
        number = first
        while number == first or (not one and time.monotonic() - began < seconds):
            tell(lines, case=number)
            trial = run_case(attack, name, seed, number, Path(own))
            tell(lines, done=number, tried=dict(trial.tried), failures=trial.failures)
            number += step
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return 0


def tell(lines: TextIO, **values: object) -> None:
    lines.write(json.dumps(values) + "\n")
    lines.flush()


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    sys.exit(work(**told))
