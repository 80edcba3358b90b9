"""Refinement: a trained SPN plays the maximin game for a few more epochs (Eq. 9 of the paper).

With `training.max_epochs=0` the networks come untrained: the paper's "without proxy".
"""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from accord.learning import FieldObjective, Replicas, TrainingRun, game_loss
from accord.methods._networks import part_options
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
        run.stage(STAGE),
        trained=recipe.training.max_epochs > 0,
    )
