"""Refinement: a trained SPN plays the maximin game for a few more epochs (Eq. 9 of the paper).

With `training.max_epochs=0` the networks come untrained: the paper's "without proxy".
"""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torch_geometric.data import Data

from accord.learning import FieldObjective, Replicas, Report, game_loss
from accord.methods._networks import part_options
from accord.methods._recipe import Recipe
from accord.methods._stage import train_stage

if TYPE_CHECKING:
    from accord.methods._spn import ProxyModel

FOLDER = "refinement"  # of its checkpoint, inside the run's


def refine(
    model: "ProxyModel",
    recipe: Recipe,
    level: str,
    train: Sequence[Data],
    validation: Sequence[Data],
    replicas: Replicas,
    folder: Path | None = None,
    report: Report | None = None,
) -> None:
    """Train the networks of a model on through the field they form; how they combine stays as it was chosen.

    What the model was before is a candidate too, so validation accuracy cannot fall.
    """
    options = recipe.refinement
    assert options is not None  # the caller has looked
    chosen = model.chosen
    objective = FieldObjective(
        dict(model.parts),
        {name: replace(part, learning_rate=options.learning_rate) for name, part in part_options(recipe).items()},
        level,
        chosen.field,
        game_loss(recipe.game),
        lambda field: chosen.labels(field, model.damping),
        {
            "game": asdict(recipe.game),
            "chosen": {name: value.tolist() for name, value in chosen.tensors().items() if name != "score"},
        },
    )
    train_stage(
        model.history,
        objective,
        replicas,
        replace(recipe.training, max_epochs=options.max_epochs),
        train,
        validation,
        None if folder is None else folder / FOLDER,
        report,
        trained=recipe.training.max_epochs > 0,
    )
