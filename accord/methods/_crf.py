"""A conditional random field trained directly: the networks' raw scores are its potentials."""

import warnings
from collections.abc import Sequence
from dataclasses import asdict

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import InputError, UnusedLabelsWarning
from accord.field import PairwiseField
from accord.graphs import Topology, batches_of
from accord.inference import Beliefs, Semiring, propagate
from accord.inference.chains import path_labels
from accord.inference.triangles import AnyField
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import (
    FieldLoss,
    FieldObjective,
    counted_nodes,
    game_loss,
    pseudolikelihood_loss,
    raw_field,
)
from accord.methods._model import Method, Shape
from accord.methods._networks import PairModel, build_networks
from accord.methods._stage import train_stage
from accord.methods._validated import measure, unseen_states
from accord.methods.recipes._recipe import CRFRecipe

SWEEPS = 20  # of max-product on graphs with loops, the default of selection too


class CRFModel(PairModel):
    """Node network and edge network (or one for both), whose scores are the potentials."""

    method = "crf"

    def field_of(self, node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
        """Scores as potentials."""
        return raw_field(*self.barred(node, edge, topology), topology)

    def labels_of(self, field: AnyField) -> Tensor:
        """Joint labels [R, nodes]."""
        assert isinstance(field, PairwiseField)
        labels = path_labels(field)
        if labels is not None:
            return labels
        return propagate(field, semiring="max", damping=self.damping, max_sweeps=SWEEPS).decode()

    def beliefs_of(self, field: AnyField, semiring: Semiring = "sum") -> Beliefs:
        """Beliefs, propagated until they converge; forests need no damping for that."""
        assert isinstance(field, PairwiseField)
        return propagate(field, semiring=semiring, damping=0.0 if field.peeling.is_forest else self.damping)


class CRF(Method):
    """Trains the field as a whole, by the maximin game or by pseudolikelihood."""

    name = "crf"
    recipe_type = CRFRecipe
    recipe: CRFRecipe

    def build(self, shape: Shape, replicas: Replicas) -> CRFModel:
        """An untrained model."""
        model = CRFModel(build_networks(self.recipe, shape, replicas), self.recipe.damping)
        model.transitions = self.recipe.transitions
        return model

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> CRFModel:
        """Train, and keep the networks whose joint labels are best on validation data."""
        model, recipe = self.build(shape, replicas), self.recipe
        if recipe.objective == "pseudolikelihood":
            _check_neighbours(run.train, replicas)
        losses: dict[str, FieldLoss] = {"maximin": game_loss(recipe.game), "pseudolikelihood": pseudolikelihood_loss}
        objective = FieldObjective(
            model.networks,
            model.networks.options(recipe.node, recipe.edge),
            self.level,
            model.field_of,
            losses[recipe.objective],
            model.labels_of,
            {"loss": recipe.objective, "game": asdict(recipe.game)},
        )
        train_stage(model.history, objective, replicas, recipe.training, run, trained=model.begin(run))
        model.validated = unseen_states(run.train, shape.num_states)
        if self.epochs:
            model.validated = measure(model, run, replicas, self.level)
        return model


def _check_neighbours(train: Sequence[Data], replicas: Replicas) -> None:
    """Warn of labels that pseudolikelihood cannot use; refuse to train if a replica has no others."""
    labelled, counted = torch.zeros(2, replicas.count, dtype=torch.long)
    for batch in batches_of(train):
        if batch.y is not None:
            targets = replicas.targets(batch.y).cpu()
            labelled += (targets >= 0).sum(-1)
            counted += counted_nodes(batch.topology.edge_index.cpu(), targets).sum(-1)
    unusable = ((counted == 0) & (labelled > 0)).nonzero().flatten()
    if len(unusable):
        replica = int(unusable[0])
        raise InputError(
            f"crf: all {int(labelled[replica])} labels of replica {replica} are of nodes with an unlabelled neighbour, "
            "so pseudolikelihood has nothing to learn from. Label more nodes, or use objective 'maximin'."
        )
    if bool((counted < labelled).any()):
        warnings.warn(
            f"crf: {int((labelled - counted).sum())} of {int(labelled.sum())} labels are of nodes with an unlabelled "
            "neighbour; pseudolikelihood does not use them. Objective 'maximin' would.",
            UnusedLabelsWarning,
            stacklevel=2,
        )
