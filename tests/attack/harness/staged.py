"""An attack for tests of the attack: each case ends in a known way."""

import os
import signal
from pathlib import Path

from attack.harness.trial import Skip, Trial


class Staged:
    """Case 1 finds a failure, case 2 kills its process, case 3 raises, case 4 hangs; all others find nothing."""

    def __init__(self, folder: Path) -> None:
        if (folder / "no room").exists():
            raise Skip("there is no room")

    def attempt(self, trial: Trial) -> None:
        trial.tried["calls"] += 1
        if trial.number == 1:
            trial.fail("a wrong label")
        elif trial.number == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        elif trial.number == 3:
            raise KeyError("unforeseen")
        elif trial.number == 4:
            signal.pause()
