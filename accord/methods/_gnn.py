"""A graph neural network alone: every node labelled by itself."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor
from torch_geometric.data import Data

from accord.graphs import GraphBatch
from accord.learning import NodeObjective, Replicas, Report
from accord.methods._model import Method, Shape
from accord.methods._networks import FlatModel, build_node_part
from accord.methods._stage import train_stage


class GNNModel(FlatModel):
    """A trained node network."""

    def log_probabilities(self, batch: GraphBatch) -> Tensor:
        """The network's own [R, nodes, states]."""
        return self.node_logits(batch).log_softmax(-1)


class GNN(Method):
    """Trains a node network by cross-entropy."""

    def build(self, shape: Shape, replicas: Replicas) -> GNNModel:
        """An untrained model."""
        return GNNModel({"node": build_node_part(self.recipe, shape, replicas)})

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
        objective = NodeObjective(model.parts["node"], self.recipe.node, self.level)
        train_stage(model.history, objective, replicas, self.recipe.training, train, validation, folder, report)
        return model
