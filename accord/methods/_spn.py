"""The Structured Proxy Network: two networks trained apart, and one field that makes their labels agree."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.graphs import GraphBatch, Topology
from accord.inference import Beliefs, Semiring
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import FieldNetworks, ProxyObjective
from accord.learning.selection import (
    FieldChoice,
    Shrinkage,
    choose_carefully,
    choose_combination,
    fit_combination,
)
from accord.learning.training import determinism, kept_memory
from accord.methods._ensemble import Ensemble
from accord.methods._model import Choice, FieldModel, Method, Shape
from accord.methods._networks import PairModel, build_networks
from accord.methods._recipe import SPNRecipe
from accord.methods._refinement import refine
from accord.methods._stage import train_stage
from accord.methods._validated import KEYS, measure, times_denser, unseen_states


class ProxyModel(PairModel):
    """Node network and edge network (or one for both), and how they combine.

    Args:
        networks: the networks.
        chosen: how they combine and how the field is solved.
        damping: of belief propagation.
    """

    method = "spn"

    def __init__(self, networks: FieldNetworks, chosen: FieldChoice, damping: float) -> None:
        super().__init__(networks, damping)
        self.chosen = chosen

    def field_of(self, node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
        """Pseudomarginals combined (Eq. 5)."""
        return self.chosen.field(node, edge, topology)

    def labels_of(self, field: PairwiseField) -> Tensor:
        """Joint labels [R, nodes]."""
        return self.chosen.labels(field, self.damping)

    def beliefs_of(self, field: PairwiseField, semiring: Semiring = "sum") -> Beliefs:
        """Beliefs with each replica's own reweighting."""
        return self.chosen.beliefs(field, semiring, self.damping)

    def choice(self) -> Choice:
        """How the networks combine and how the field is solved."""
        return self.chosen.to_config() | super().choice()

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over a choice of combination and solver settings."""
        super().choose(choice)
        own = {name: values for name, values in choice.items() if name not in KEYS}
        self.chosen = FieldChoice.from_config(own).to(self.device)

    def to(self, device: torch.device) -> None:
        """Move networks and choice."""
        super().to(device)
        self.chosen = self.chosen.to(device)


class StructuredProxyNetwork(Method):
    """Solves the proxy problem, chooses how the networks combine, and refines the field where that is asked for."""

    name = "spn"
    recipe_type = SPNRecipe
    recipe: SPNRecipe
    simple = True

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes."""
        return self.recipe.training.max_epochs + (self.recipe.refinement.max_epochs if self.recipe.refinement else 0)

    def build(self, shape: Shape, replicas: Replicas) -> ProxyModel:
        """An untrained model that combines its networks by the first candidate."""
        chosen = FieldChoice.default(self.recipe.grid.candidates()[0], replicas.pooled(self.ensemble).count)
        model = ProxyModel(build_networks(self.recipe, shape, replicas), chosen, self.recipe.damping)
        model.ensemble = Ensemble.of(replicas, self.ensemble)
        return model

    def objective(self, model: FieldModel) -> ProxyObjective:
        """The proxy problem."""
        assert isinstance(model, ProxyModel)
        options = model.networks.options(self.recipe.node, self.recipe.edge)
        return ProxyObjective(model.networks, options, self.level, self.recipe.consistency, self.recipe.edge_level)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> ProxyModel:
        """Train; keep the best networks and choose their combination on validation data."""
        model, recipe = self.build(shape, replicas), self.recipe
        begun = model.begin(run)
        objective = self.objective(model)
        train_stage(model.history, objective, replicas, recipe.training, run, begun, model.kept)
        if recipe.training.max_epochs or begun:  # predictions of untrained networks are nothing to choose by
            return self.settle(model, run, shape, replicas)
        model.validated = unseen_states(run.train, shape.num_states)
        if recipe.refinement is not None:
            refine(model, recipe, self.level, run, replicas)
            model.validated = measure(model, run, replicas.pooled(self.ensemble), self.level)
        return model

    def settle(self, model: ProxyModel, run: TrainingRun, shape: Shape, replicas: Replicas) -> ProxyModel:
        """Choose how trained networks combine, refine the field where that is asked for, and calibrate."""
        recipe, own = self.recipe, replicas.pooled(self.ensemble)
        model.validated = unseen_states(run.train, shape.num_states)
        with determinism(recipe.training.deterministic), kept_memory(model.device):
            held_out = GraphBatch.collate(run.validation).to(model.device, torch.float32)
            model.chosen = self._choose(model, held_out, own, self._shrinkage(run, own, model.device), run)
        if recipe.refinement is not None:
            refine(model, recipe, self.level, run, replicas)
        with determinism(recipe.training.deterministic), kept_memory(model.device):
            weight = model.chosen.node_weight if recipe.rule == "careful" else None
            model.validated = measure(model, run, own, self.level, weight)
        return model

    def _choose(
        self,
        model: ProxyModel,
        held_out: GraphBatch,
        replicas: Replicas,
        shrinkage: Shrinkage | None,
        run: TrainingRun,
    ) -> FieldChoice:
        """The combination for the validation graphs, by the recipe's selection and rule."""
        assert held_out.y is not None  # the trainer has refused graphs without labels
        recipe, targets = self.recipe, replicas.targets(held_out.y)
        careful = partial(choose_carefully, denser=times_denser(run))
        by_grid = careful if recipe.rule == "careful" else choose_combination
        choose = by_grid if recipe.selection == "grid" else fit_combination
        return choose(
            *model.logits(held_out), targets, held_out.topology, self.level, recipe.grid, recipe.damping, shrinkage
        )

    def _shrinkage(self, run: TrainingRun, replicas: Replicas, device: torch.device) -> Shrinkage | None:
        """How far pseudomarginals are shrunk: the fewer labelled nodes and edges, the further; None for not at all."""
        if not self.recipe.shrinkage:
            return None
        train = GraphBatch.collate(run.train)
        assert train.y is not None
        known = replicas.targets(train.y) >= 0
        source, target = train.topology.edge_index
        counts = (known.sum(-1), (known[:, source] & known[:, target]).sum(-1))
        nodes, edges = (self.recipe.shrinkage / (count.to(device) + self.recipe.shrinkage) for count in counts)
        return nodes, edges
