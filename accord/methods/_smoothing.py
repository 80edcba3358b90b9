"""A GNN whose predictions are smoothed over the graph: the "smooth" half of Correct and Smooth (Huang et al. 2021).

The other half corrects by labels known on the same graph, of which new graphs have none.
"""

from collections.abc import Mapping
from itertools import product

import torch
from torch import Tensor, nn
from torch_geometric.nn.models import LabelPropagation

from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun, determinism, rank
from accord.methods._gnn import GNN
from accord.methods._model import Method, Shape
from accord.methods._networks import FlatModel
from accord.methods._recipe import GNNRecipe

SMALLEST = 1e-30  # probability, so that logs stay finite
# Candidates (rounds, share taken from the neighbours in each); the first, no smoothing, wins ties.
CANDIDATES = ((0, 0.0), *product((1, 2, 10, 50), (0.1, 0.3, 0.5, 0.7, 0.9)))


class SmoothedModel(FlatModel):
    """A node network and how much its predictions are smoothed."""

    def __init__(self, parts: Mapping[str, nn.Module], candidate: Tensor) -> None:
        super().__init__(parts)
        self.candidate = candidate  # [R], numbers in CANDIDATES

    def log_probabilities(self, batch: GraphBatch) -> Tensor:
        """Smoothed [R, nodes, states]."""
        alone = self.node_logits(batch).softmax(-1)
        smoothed = alone.clone()
        for number in self.candidate.unique().tolist():
            mine = self.candidate == number
            smoothed[mine] = smooth(alone[mine], batch, *CANDIDATES[int(number)])
        return smoothed.clamp_min(SMALLEST).log()

    def choice(self) -> dict[str, Tensor]:
        """How much each replica smooths."""
        return {"candidate": self.candidate}

    def choose(self, choice: dict[str, Tensor]) -> None:
        """Take such a choice."""
        self.candidate = choice["candidate"]


class SmoothedGNN(Method):
    """Trains a node network, then chooses on validation data how much to smooth."""

    name = "smooth"
    recipe_type = GNNRecipe
    recipe: GNNRecipe

    def build(self, shape: Shape, replicas: Replicas) -> SmoothedModel:
        """An untrained model that does not smooth."""
        nothing = torch.zeros(replicas.count, dtype=torch.long)
        return SmoothedModel(GNN(self.recipe, self.level).build(shape, replicas).parts, nothing)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> SmoothedModel:
        """Train; keep the best network and choose the smoothing on validation data."""
        gnn = GNN(self.recipe, self.level).fit(run, shape, replicas)
        held_out = GraphBatch.collate(run.validation).to(gnn.device, torch.float32)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        targets = replicas.targets(held_out.y)
        with determinism(self.recipe.training.deterministic):
            alone = gnn.node_logits(held_out).softmax(-1)
            ranks = [
                rank(smooth(alone, held_out, *candidate).argmax(-1), targets, held_out.topology, self.level)
                for candidate in CANDIDATES
            ]
        model = SmoothedModel(gnn.parts, torch.stack(ranks).argmax(0))
        model.history = gnn.history
        return model


def smooth(probabilities: Tensor, batch: GraphBatch, rounds: int, share: float) -> Tensor:
    """Average with the neighbours' predictions, by PyG's label propagation: [R, nodes, states].

    Args:
        probabilities: [R, nodes, states].
        batch: the graphs.
        rounds: how often.
        share: of the neighbours in each round; a node without any keeps the rest alone.
    """
    if not rounds:
        return probabilities
    arcs = batch.topology.arcs
    columns = probabilities.transpose(0, 1).flatten(1)  # all replicas and states side by side
    spread = LabelPropagation(num_layers=rounds, alpha=share)(columns, torch.stack([arcs.source, arcs.target]))
    mixed: Tensor = spread.view(len(columns), *probabilities.shape[::2]).transpose(0, 1)
    return mixed
