"""Refinement: a trained SPN plays the maximin game for a few more epochs (Eq. 11 of the paper).

With `training.max_epochs=0` the networks come untrained: the paper's "without proxy".
"""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import FieldObjective, game_loss
from accord.methods._recipe import SPNRecipe
from accord.methods._stage import train_stage

if TYPE_CHECKING:
    from accord.methods._spn import ProxyModel

STAGE = "refinement"  # its checkpoint's subfolder


def refine(model: "ProxyModel", recipe: SPNRecipe, level: str, run: TrainingRun, replicas: Replicas) -> None:
    """Train the networks of a model on through the field they form; how they combine stays as it was chosen.

    What the model was before is a candidate too, so validation accuracy cannot fall.
    """
    options = recipe.refinement
    assert options is not None  # the caller has looked
    node, edge = (replace(part, learning_rate=options.learning_rate) for part in (recipe.node, recipe.edge))
    objective = FieldObjective(
        model.networks,
        model.networks.options(node, edge),
        level,
        model.field_of,
        game_loss(recipe.game),
        model.labels_of,
        {
            "game": asdict(recipe.game),
            "chosen": {name: values for name, values in model.choice().items() if name != "score"},
        },
    )
    train_stage(
        model.history,
        objective,
        replicas,
        replace(recipe.training, max_epochs=options.max_epochs),
        run.stage(STAGE),
        trained=recipe.training.max_epochs > 0,
    )
