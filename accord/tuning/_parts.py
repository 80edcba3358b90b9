"""The networks of an SPN trained apart: a node network or an edge network alone, and the two put together.

Without a consistency penalty neither network of the proxy problem (Eq. 9) sees the other. So one that is trained alone
equals, up to rounding, the one that an SPN of the same recipe and seed trains, and a search can treat them separately.
"""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from accord.errors import DivergenceWarning
from accord.graphs import GraphBatch
from accord.learning import HistoryRow, PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.objectives import EdgeObjective, NodeObjective, edge_loss, node_loss
from accord.learning.training import Job, Objective, Trained, Trainer, copy_of, learned, train_in_chunks
from accord.methods import PairRecipe, ProxyModel, Recipe, Shape, SPNRecipe, StructuredProxyNetwork
from accord.methods._networks import build_edge_part, build_node_part


@dataclass(frozen=True, eq=False)
class TrainedPart:
    """A network trained by itself, with its scores on validation graphs for each of its replicas."""

    part: nn.Module  # a NodePart or an EdgePart
    score: Tensor  # [R], of nodes: accuracy at the level asked for; of edges: accuracy on pairs of states
    loss: Tensor  # [R], mean cross-entropy of validation labels, or of pairs of labels, in nats
    history: list[HistoryRow]
    seconds: float
    kept: Tensor  # [R], the epoch whose parameters were kept

    def subset(self, places: Sequence[int]) -> "TrainedPart":
        """A copy of the replicas at some positions."""
        chosen = torch.tensor(list(places))
        part = copy_of(self.part, chosen) if len(chosen) < len(self.score) else self.part
        return TrainedPart(part, self.score[chosen], self.loss[chosen], self.history, self.seconds, self.kept[chosen])


def train_node_part(
    recipe: Recipe,
    run: TrainingRun,
    shape: Shape,
    replicas: Replicas,
    level: str = "node",
    options: Sequence[PartOptions] | None = None,
    only: Sequence[int] | None = None,
) -> TrainedPart:
    """Train the node network of a recipe by itself (`encoder`, `node` and `training` of the recipe count).

    Args:
        recipe: of any method.
        run: treated graphs, checkpoint folder and callback. A checkpoint of fewer epochs is continued.
        shape: sizes that the data fix.
        replicas: seeds and tasks.
        level: what the best parameters are kept by.
        options: learning rate and weight decay of each replica; None takes the recipe's for all.
        only: numbers of the replicas to train; the others stay as the checkpoint has them. None trains all.
    """
    began = time.perf_counter()
    part = build_node_part(recipe, shape, replicas)
    objective = NodeObjective(part, recipe.node, level)
    trained = _train(objective, recipe.training, run, replicas, options, only)
    held_out, targets = validation_batch(run, replicas, trained.device)
    with torch.no_grad():
        loss = node_loss(part(held_out), targets)
        score = objective.scores(held_out, targets)["node"]
    seconds = time.perf_counter() - began
    return TrainedPart(part, score.cpu(), loss.cpu(), trained.history, seconds, trained.kept["node"])


def train_edge_part(
    recipe: PairRecipe,
    run: TrainingRun,
    shape: Shape,
    replicas: Replicas,
    options: Sequence[PartOptions] | None = None,
    only: Sequence[int] | None = None,
) -> TrainedPart:
    """Train the edge network of a recipe by itself (its edge encoder, scorer, `edge` and `training` count).

    The arguments are those of `train_node_part`.
    """
    began = time.perf_counter()
    part = build_edge_part(recipe, shape, replicas)
    objective = EdgeObjective(part, recipe.edge)
    trained = _train(objective, recipe.training, run, replicas, options, only)
    held_out, targets = validation_batch(run, replicas, trained.device)
    with torch.no_grad():
        logits = part(held_out)
        loss = edge_loss(logits, targets, held_out.topology)
        score = objective.scores(held_out, targets)["edge"]
    seconds = time.perf_counter() - began
    return TrainedPart(part, score.cpu(), loss.cpu(), trained.history, seconds, trained.kept["edge"])


@torch.no_grad()
def combine_parts(
    recipe: SPNRecipe,
    node: TrainedPart,
    edge: TrainedPart,
    run: TrainingRun,
    shape: Shape,
    replicas: Replicas,
    level: str = "node",
    ensemble: int = 1,
) -> ProxyModel:
    """The SPN of two networks that were trained apart; how they combine is chosen on the validation graphs.

    Args:
        recipe: describes both networks (their encoders and the scorer), the grid and the damping.
        node: the node network, with one entry for each of `replicas`.
        edge: the edge network, likewise.
        run: its validation graphs decide.
        shape: sizes that the data fix.
        replicas: seeds and tasks.
        level: what to choose by.
        ensemble: so many consecutive seeds form one model.
    """
    method = StructuredProxyNetwork(replace(recipe, triangles=None), level, ensemble)  # triangles are learned later
    model = method.build(shape, replicas)
    device = next(node.part.parameters()).device
    model.to(device)
    for name, trained in (("node", node), ("edge", edge)):
        for value, own in zip(learned(model.parts[name]).values(), learned(trained.part).values(), strict=True):
            value.copy_(own)
    model.history = [*node.history]
    model.kept = {"node": node.kept, "edge": edge.kept}
    return method.settle(model, run, shape, replicas)


def validation_batch(run: TrainingRun, replicas: Replicas, device: torch.device) -> tuple[GraphBatch, Tensor]:
    """The validation graphs side by side, and their labels [R, nodes]."""
    held_out = GraphBatch.collate(run.validation).to(device, torch.float32)
    assert held_out.y is not None  # the trainer refuses graphs without labels
    return held_out, replicas.targets(held_out.y)


def _train(
    objective: Objective,
    training: TrainingOptions,
    run: TrainingRun,
    replicas: Replicas,
    options: Sequence[PartOptions] | None,
    only: Sequence[int] | None,
) -> Trained:
    """Train the one part of an objective; replicas that diverge keep their best parameters, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        if options is None and only is None:
            return train_in_chunks(Job(objective, replicas, training, run))
        trainer = Trainer(objective, replicas, training)
        if options is not None:
            (name,) = objective.parts
            rates = [[own.learning_rate, own.weight_decay] for own in options]
            objective.identity = {**objective.identity, "rates": rates}  # of the checkpoint
            trainer.updater.set_rates(name, options)
        trainer.fit(run, only)
        return Trained(trainer.history, trainer.fabric.device, trainer.kept)
