"""What all attacks share: one numbered case of an attack, what it tried, and what it found."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random


@dataclass
class Trial:
    """One case. The attack, the seed and the number determine every choice that the case makes.

    Attributes:
        attack: name of the attack.
        seed: of the whole run of attacks.
        number: of the case.
        folder: an empty folder for the files of the case.
        tried: how many kills, calls, files or fields it tried.
        failures: what went wrong, each in words that a reader can act on.
    """

    attack: str
    seed: int
    number: int
    folder: Path
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = Random(f"{self.attack} {self.seed} {self.number}")

    def fail(self, message: str) -> None:
        """Record a failure."""
        self.failures.append(message)


class Skip(Exception):
    """The attack cannot run on this machine; the message says why."""
