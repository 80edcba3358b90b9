"""What came of one encoder on one PPI data set, seed by seed."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from accord.methods import Recipe, recipe_to_config


@dataclass(frozen=True, kw_only=True)
class PPIResult:
    """One encoder on one data set: fractions on test data over all labels for each seed, and what led to them."""

    benchmark: str
    encoder: str
    preset: str
    seeds: list[int]
    scores: dict[str, dict[str, list[float]]]  # by way to label ("gnn", "spn", "picked") and measure
    recipe: dict[str, Any]
    provenance: dict[str, str]

    def followed(self, recipe: Recipe) -> bool:
        """Whether this is the recipe that led to it."""
        return bool(self.recipe == json.loads(json.dumps(recipe_to_config(recipe))))

    def followed_by(self, other: "PPIResult") -> "PPIResult":
        """With more seeds."""
        scores = {
            way: {name: values + other.scores[way][name] for name, values in own.items()}
            for way, own in self.scores.items()
        }
        return replace(other, seeds=self.seeds + other.seeds, scores=scores)

    def write(self, path: Path) -> None:
        """Store it, whole or not at all."""
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_text(json.dumps(asdict(self), indent=1) + "\n")
        os.replace(beside, path)


def read_ppi_result(path: Path) -> PPIResult | None:
    """What is stored there, if anything."""
    return PPIResult(**json.loads(path.read_text())) if path.is_file() else None
