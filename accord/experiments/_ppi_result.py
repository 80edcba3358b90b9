"""What came of one encoder on one PPI data set, seed by seed."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from accord._files import write_json
from accord.learning import CombinationGrid
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
    picked_from: dict[str, Any]  # candidates of "picked"
    provenance: list[dict[str, str]]  # a seed

    def came_of(self, recipe: Recipe, grid: CombinationGrid) -> bool:
        """Whether these led to it, wherever that was computed."""
        asked: dict[str, Any] = json.loads(json.dumps({"recipe": recipe_to_config(recipe), "grid": asdict(grid)}))
        asked["recipe"]["training"]["accelerator"] = self.recipe["training"]["accelerator"]
        # Results stored before methods had recipes of their own hold other methods' fields too, and no method's name.
        stored = {"method": recipe.method} | {key: self.recipe[key] for key in asked["recipe"] if key in self.recipe}
        return asked == {"recipe": stored, "grid": self.picked_from}

    def followed_by(self, other: "PPIResult") -> "PPIResult":
        """With more seeds."""
        scores = {
            way: {name: values + other.scores[way][name] for name, values in own.items()}
            for way, own in self.scores.items()
        }
        return replace(
            other, seeds=self.seeds + other.seeds, scores=scores, provenance=self.provenance + other.provenance
        )

    def write(self, path: Path) -> Path:
        """Store it."""
        return write_json(path, asdict(self))


def read_ppi_result(path: Path) -> PPIResult | None:
    """What is stored there, if anything."""
    return PPIResult(**json.loads(path.read_text())) if path.is_file() else None
