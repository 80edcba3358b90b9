"""A graph neural network alone: every node labelled by itself."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, Semiring, propagate
from accord.learning import NodeObjective, NodePart, Replicas, Report, Row, learned
from accord.methods._model import Shape
from accord.methods._networks import build_node_part, load_parameters
from accord.methods._recipe import Recipe
from accord.methods._stage import train_stage


class GNNModel:
    """A trained node network; its field has no bonds between labels."""

    def __init__(self, node: NodePart) -> None:
        self.node = node
        self.history: list[Row] = []

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states]."""
        logits: Tensor = self.node(batch)
        return logits.float()

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Node marginals, and edge tables of zeros."""
        return flat_field(self.node_logits(batch).log_softmax(-1), batch)

    def labels(self, batch: GraphBatch) -> Tensor:
        """Each node's best state [R, nodes]."""
        return self.node_logits(batch).argmax(-1)

    def beliefs(self, batch: GraphBatch, semiring: Semiring) -> Beliefs:
        """Beliefs of a field without bonds."""
        return propagate(self.field(batch), semiring=semiring)

    def to(self, device: torch.device) -> None:
        """Move the network."""
        self.node.to(device)

    def tensors(self) -> dict[str, Tensor]:
        """Weights of the node network."""
        return {f"node/{name}": value for name, value in learned(self.node).items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put weights back."""
        load_parameters(self.node, tensors, "node/")


class GNN:
    """Trains a node network by cross-entropy."""

    def __init__(self, recipe: Recipe, level: str = "node") -> None:
        self.recipe, self.level = recipe, level

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes."""
        return self.recipe.training.max_epochs

    def build(self, shape: Shape, replicas: Replicas) -> GNNModel:
        """An untrained model."""
        return GNNModel(build_node_part(self.recipe, shape, replicas))

    def fit(
        self,
        train: Sequence[Data],
        validation: Sequence[Data],
        shape: Shape,
        replicas: Replicas,
        folder: Path | None = None,
        report: Report | None = None,
    ) -> GNNModel:
        """Train on `train`, keep what is best on `validation`."""
        model = self.build(shape, replicas)
        objective = NodeObjective(model.node, self.recipe.node, self.level)
        train_stage(model.history, objective, replicas, self.recipe.training, train, validation, folder, report)
        return model


def flat_field(node: Tensor, batch: GraphBatch) -> PairwiseField:
    """Node marginals (logs) [R, nodes, states] as a field without bonds: edge tables of zeros."""
    topology, states = batch.topology, node.shape[-1]
    flat = node.new_zeros(()).expand(topology.num_edges, states, states)
    return PairwiseField(topology.edge_index, node, flat, topology.graph, topology.num_graphs)
