"""A row of the table of methods, and what came of it on one data set."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from accord._files import write_json
from accord.methods import Recipe, preset_recipe


@dataclass(frozen=True)
class Row:
    """A row of the table: a method, and how its recipe differs from the preset's."""

    title: str
    method: str
    encoder: str | None = None  # None: any that is asked for
    refine: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)

    def recipe(self, preset: str, encoder: str, benchmark: str) -> Recipe:
        """The preset's recipe for this row."""
        found = preset_recipe(preset, encoder, benchmark=benchmark, method=self.method, refine=self.refine)
        return replace(found, **self.changes)


@dataclass(frozen=True, kw_only=True)
class Result:
    """One row on one data set: fractions on test data for each seed, and everything that led to them."""

    row: str
    benchmark: str
    features: str
    encoder: str
    preset: str
    seeds: tuple[int, ...]
    scores: dict[str, list[float]]  # by measure
    seconds: float  # all seeds side by side
    recipe: dict[str, Any]
    provenance: dict[str, str]

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.preset}-{self.benchmark.rstrip('*')}-{self.row}-{self.encoder}.json"

    def write(self, folder: Path) -> Path:
        """Store it."""
        return write_json(folder / self.name, asdict(self))


def read_results(folder: Path) -> list[Result]:
    """All results stored in a folder, by file name."""
    return [Result(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
