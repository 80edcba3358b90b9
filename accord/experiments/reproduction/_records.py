"""Records: what one seed of one cell gave on one block of labels, with everything that produced it."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import Any

from accord._files import fingerprint
from accord.experiments.reproduction._cells import Block, Cell
from accord.methods import Recipe, recipe_to_config

Metrics = dict[str, dict[str, float]]  # way of labelling -> measure -> value
COUNTS = ("right", "known", "hits", "marked", "true")  # of a block of labels, from which accuracy and micro-F1 follow
# Options that change speed, rounding or checkpoints, but not the experiment.
FREE = ("accelerator", "precision", "cuda_graphs", "devices", "nodes", "deterministic", "checkpoint_every")


@dataclass(frozen=True)
class Context:
    """What many records share, stored once: the recipe, versions, hardware, commit, and where they come from.

    Attributes:
        recipe: as json values, without the number of epochs.
        features: treatment of the features.
        provenance: versions, hardware, commit and date.
        source: the command that computed the records, or the file that they were imported from.
    """

    recipe: Mapping[str, Any]
    features: str
    provenance: Mapping[str, str]
    source: str

    @property
    def code(self) -> str:
        """A short code for exactly this context."""
        return fingerprint([json.dumps(asdict(self), sort_keys=True)])


@dataclass(frozen=True, kw_only=True)
class Record:
    """One seed of one cell on one block of labels.

    Attributes:
        cell: what was computed.
        seed: the seed.
        block: labels from the first up to, but not including, the second; None where a node has one label.
        epochs: how long was trained.
        shortened: whether that is less than the recipe's own number.
        recipe: code of the recipe, by which a changed preset is told from the old one.
        metrics: fractions, or counts for blocks of labels, or seconds; by way and measure.
        seconds: training, selection and test; an equal share of those that ran together. None if not measured.
        context: code of the context.
        details: what figures are drawn from.
    """

    cell: Cell
    seed: int
    epochs: int
    recipe: str
    metrics: Metrics
    context: str
    block: Block | None = None
    shortened: bool = False
    seconds: float | None = None
    details: Any = field(default=None, compare=False)

    @property
    def identity(self) -> tuple[str, int, Block | None, int, str]:
        """Records of the same identity count once."""
        return self.cell.key, self.seed, self.block, self.epochs, self.recipe

    def plain(self) -> dict[str, Any]:
        """As json values; fields with their usual value are left out."""
        values = asdict(self)
        unused = {"encoder": "-", "preset": "-", "variant": ""}
        cell = {name: value for name, value in values.pop("cell").items() if unused.get(name) != value}
        usual = {"block": None, "shortened": False, "seconds": None, "details": None}
        return {**cell, **{name: value for name, value in values.items() if usual.get(name, self) != value}}

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> "Record":
        """Read what `plain` wrote; raises TypeError, LookupError or ValueError for anything else."""
        rest = dict(values)
        cell = Cell(**{name: str(rest.pop(name)) for name in list(rest) if name in Cell.__dataclass_fields__})
        block = rest.get("block")
        rest["block"] = None if block is None else (int(block[0]), int(block[1]))
        record = cls(cell=cell, **rest)
        for way in record.metrics.values():
            for value in way.values():
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise ValueError(f"{value!r} is not a number")
        return record


def recipe_code(recipe: Recipe | None) -> str:
    """A short code for a recipe, without epochs and what changes only speed; empty for studies without one."""
    return "" if recipe is None else fingerprint([json.dumps(plain_recipe(recipe), sort_keys=True)])


def same_recipe(stored: Mapping[str, Any], value: Any) -> bool:
    """Whether a stored recipe is that of the present code.

    Options that came later are not stored; they must have their usual values now.

    Args:
        stored: as `plain_recipe` gave it, perhaps by an earlier version.
        value: the recipe, or a part of it.
    """
    if "kind" in stored and stored["kind"] != getattr(value, "kind", None):
        return False
    for entry in fields(value):
        now = getattr(value, entry.name)
        if entry.name in (*FREE, "max_epochs"):
            continue
        if entry.name not in stored:
            usual = entry.default if entry.default_factory is MISSING else entry.default_factory()
            if now != usual:
                return False
        elif is_dataclass(now):
            if not isinstance(stored[entry.name], Mapping) or not same_recipe(stored[entry.name], now):
                return False
        elif json.loads(json.dumps(now)) != stored[entry.name]:
            return False
    return True


def plain_recipe(recipe: Recipe | None) -> dict[str, Any]:
    """A recipe as json values, without epochs and what changes only speed."""
    if recipe is None:
        return {}
    config: dict[str, Any] = json.loads(json.dumps(recipe_to_config(recipe)))
    for name in (*FREE, "max_epochs"):
        config["training"].pop(name, None)
    return config
