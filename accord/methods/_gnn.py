"""A graph neural network alone: every node labelled by itself."""

from torch import Tensor

from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import NodeObjective
from accord.methods._ensemble import Ensemble
from accord.methods._model import FieldModel, Method, Shape
from accord.methods._networks import FlatModel, build_node_part
from accord.methods._stage import train_stage
from accord.methods._validated import measure, unseen_states
from accord.methods.recipes._recipe import GNNRecipe


class GNNModel(FlatModel):
    """A trained node network."""

    method = "gnn"

    def log_probabilities_of(self, logits: Tensor, batch: GraphBatch) -> Tensor:
        """The network's own [R, nodes, states]."""
        return logits.log_softmax(-1)


class GNN(Method):
    """Trains a node network by cross-entropy."""

    name = "gnn"
    recipe_type = GNNRecipe
    recipe: GNNRecipe
    simple = True

    def build(self, shape: Shape, replicas: Replicas) -> GNNModel:
        """An untrained model."""
        model = GNNModel({"node": build_node_part(self.recipe, shape, replicas)})
        model.ensemble = Ensemble.of(replicas, self.ensemble)
        return model

    def objective(self, model: FieldModel) -> NodeObjective:
        """Cross-entropy at nodes."""
        return NodeObjective(model.parts["node"], self.recipe.node, self.level)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> GNNModel:
        """Train, and keep the parameters that are best on validation data."""
        model = self.build(shape, replicas)
        begun = model.begin(run)
        train_stage(model.history, self.objective(model), replicas, self.recipe.training, run, begun, model.kept)
        return self.settle(model, run, shape, replicas)

    def settle(self, model: GNNModel, run: TrainingRun, shape: Shape, replicas: Replicas) -> GNNModel:
        """What validation data say about a trained network."""
        model.validated = unseen_states(run.train, shape.num_states)
        if self.epochs or run.start is not None:
            model.validated = measure(model, run, replicas.pooled(self.ensemble), self.level)
        return model
