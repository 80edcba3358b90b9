"""Refinement: a trained SPN is trained further by the maximin game, for a few epochs (Eq. 11 of the paper).

With `training.max_epochs=0` the game starts from untrained networks: the paper's "without proxy".
"""

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import FieldObjective, game_loss
from accord.methods._stage import train_stage
from accord.methods.recipes._recipe import SPNRecipe

if TYPE_CHECKING:
    from accord.methods._proxy import ProxyModel

STAGE = "refinement"  # subfolder of its checkpoint


def refine(model: "ProxyModel", recipe: SPNRecipe, level: str, run: TrainingRun, replicas: Replicas) -> None:
    """Train the networks of a model further through the field they form; the chosen combination stays.

    The unrefined networks are kept if they score better on validation data, so validation accuracy cannot fall.

    Args:
        model: the trained model, changed in place.
        recipe: with a refinement.
        level: what to select by on validation data.
        run: graphs, checkpoint folder and callback.
        replicas: seeds and tasks.
    """
    options = recipe.refinement
    assert options is not None  # the caller has checked
    node, edge = (replace(part, learning_rate=options.learning_rate) for part in (recipe.node, recipe.edge))
    networks = model.refined
    objective = FieldObjective(
        networks,
        networks.options(node, edge),
        level,
        lambda *scores: model.field_of_scores(*scores[:-1], topology=scores[-1]),
        game_loss(recipe.game),
        model.labels_of,
        {
            "game": asdict(recipe.game),
            "chosen": {name: values for name, values in model.combination().items() if name != "score"},
        },
    )
    train_stage(
        model.history,
        objective,
        replicas,
        replace(recipe.training, max_epochs=options.max_epochs),
        run.stage(STAGE),
        trained=recipe.training.max_epochs > 0 or run.start is not None,
    )
