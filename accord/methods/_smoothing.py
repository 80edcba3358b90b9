"""A GNN whose predictions are smoothed over the graph: the "smooth" half of Correct and Smooth (Huang et al. 2021).

The other half corrects by labels known on the same graph, which new graphs do not have.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn.models import LabelPropagation

from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import NodeObjective, rank
from accord.learning.training import determinism
from accord.methods._gnn import GNN
from accord.methods._model import Choice, FieldModel, Method, Shape
from accord.methods._networks import FlatModel
from accord.methods._validated import measure
from accord.methods.recipes._recipe import GNNRecipe

Smoothing = tuple[int, float]  # rounds, and the neighbours' share in each
NONE: Smoothing = (0, 0.0)
CANDIDATES: tuple[Smoothing, ...] = (NONE, *product((1, 2, 10, 50), (0.1, 0.3, 0.5, 0.7, 0.9)))  # the first wins ties
SMALLEST = 1e-30  # probability, so that logs stay finite


class SmoothedModel(FlatModel):
    """A node network and how much its predictions are smoothed.

    Args:
        parts: the node network.
        smoothing: of each replica.
    """

    method = "smooth"

    def __init__(self, parts: Mapping[str, nn.Module], smoothing: Sequence[Smoothing]) -> None:
        super().__init__(parts)
        self.smoothing = list(smoothing)

    def log_probabilities_of(self, logits: Tensor, batch: GraphBatch) -> Tensor:
        """Smoothed [R, nodes, states]."""
        alone = logits.softmax(-1)
        smoothed = alone.clone()
        for rounds, share in dict.fromkeys(self.smoothing):
            mine = torch.tensor([own == (rounds, share) for own in self.smoothing], device=alone.device)
            smoothed[mine] = smooth(alone[mine], batch, rounds, share)
        return self.possible(smoothed.clamp_min(SMALLEST).log())

    def choice(self) -> Choice:
        """Rounds of smoothing and the neighbours' share in each, for every replica."""
        rounds, shares = ([pair[place] for pair in self.smoothing] for place in (0, 1))
        return {"rounds": rounds, "share": shares, **super().choice()}

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over the smoothing of a choice."""
        super().choose(choice)
        pairs = zip(choice["rounds"], choice["share"], strict=True)
        self.smoothing = [(int(rounds), float(share)) for rounds, share in pairs]


class SmoothedGNN(Method):
    """Trains a node network, then chooses on validation data how much to smooth."""

    name = "smooth"
    recipe_type = GNNRecipe
    recipe: GNNRecipe
    simple = True

    def build(self, shape: Shape, replicas: Replicas) -> SmoothedModel:
        """An untrained model that does not smooth."""
        network = GNN(self.recipe, self.level, self.ensemble).build(shape, replicas)
        return self._smoothed(network, [NONE] * replicas.pooled(self.ensemble).count)

    def objective(self, model: FieldModel) -> NodeObjective:
        """Cross-entropy at nodes, before smoothing."""
        return GNN(self.recipe, self.level).objective(model)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> SmoothedModel:
        """Train; keep the best network and choose the smoothing on validation data."""
        gnn = GNN(self.recipe, self.level, self.ensemble).fit(run, shape, replicas)
        held_out = GraphBatch.collate(run.validation).to(gnn.device, torch.float32)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        targets = replicas.pooled(self.ensemble).targets(held_out.y)
        with determinism(self.recipe.training.deterministic):
            alone = gnn.node_logits(held_out).softmax(-1)
            ranks = []
            for candidate in CANDIDATES:
                mixed = smooth(alone, held_out, *candidate)
                logs = mixed.clamp_min(SMALLEST).log()
                ranks.append(rank(mixed.argmax(-1), targets, held_out.topology, self.level, logs))
        best = torch.stack(ranks).argmax(0).tolist()
        model = self._smoothed(gnn, [CANDIDATES[number] for number in best])
        if self.epochs:
            model.validated = measure(model, run, replicas.pooled(self.ensemble), self.level)
        return model

    def _smoothed(self, network: FieldModel, smoothing: Sequence[Smoothing]) -> SmoothedModel:
        """A model that smooths the predictions of a network."""
        model = SmoothedModel(network.parts, smoothing)
        model.history, model.kept, model.ensemble = network.history, network.kept, network.ensemble
        model.validated = network.validated
        return model


def smooth(probabilities: Tensor, batch: GraphBatch, rounds: int, share: float) -> Tensor:
    """Predictions averaged with those of the neighbours, by PyG's label propagation: [R, nodes, states].

    Args:
        probabilities: [R, nodes, states].
        batch: the graphs.
        rounds: how often.
        share: weight of the neighbours in each round; a node's own prediction has the rest.
    """
    if not rounds:
        return probabilities
    arcs = batch.topology.arcs
    columns = probabilities.transpose(0, 1).flatten(1)  # all replicas and states side by side
    spread = LabelPropagation(num_layers=rounds, alpha=share)(
        columns,
        torch.stack([arcs.source, arcs.target]),
        edge_weight=_part_weights(batch),
        post_step=lambda mixed: batch.fill_ghosts(mixed.clamp_(0.0, 1.0)),
    )
    mixed: Tensor = spread.view(len(columns), *probabilities.shape[::2]).transpose(0, 1)
    return mixed.to(probabilities.dtype)  # PyG computes degrees in torch's default type


def _part_weights(batch: GraphBatch) -> Tensor | None:
    """The weight of each arc on a part of a graph, where PyG cannot count the neighbours of ghosts; None elsewhere."""
    if batch.halo is None:
        return None
    arcs = batch.topology.arcs
    degree = torch.bincount(arcs.target, minlength=batch.num_nodes).to(torch.get_default_dtype())
    scale = batch.fill_ghosts(degree.rsqrt())  # a node without neighbours has no arc that would read it
    return scale[arcs.source] * scale[arcs.target]
