"""The Structured Proxy Network: two networks trained apart, and one field that makes their labels agree."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.graphs import GraphBatch, Topology
from accord.inference import Beliefs, Semiring
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import FieldNetworks, ProxyObjective
from accord.learning.selection import FieldChoice, choose_combination, fit_combination
from accord.learning.training import determinism, kept_memory
from accord.methods._ensemble import Ensemble
from accord.methods._model import Choice, FieldModel, Method, Shape
from accord.methods._networks import PairModel, build_networks
from accord.methods._recipe import SPNRecipe
from accord.methods._refinement import refine
from accord.methods._stage import train_stage


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
        return self.chosen.to_config()

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over a choice of combination and solver settings."""
        self.chosen = FieldChoice.from_config(choice).to(self.device)

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
        return ProxyObjective(model.networks, options, self.level, self.recipe.consistency)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> ProxyModel:
        """Train; keep the best networks and choose their combination on validation data."""
        model, recipe = self.build(shape, replicas), self.recipe
        begun = model.begin(run)
        objective = self.objective(model)
        device = train_stage(model.history, objective, replicas, recipe.training, run, begun, model.kept)
        if recipe.training.max_epochs or begun:  # predictions of untrained networks are nothing to choose by
            with determinism(recipe.training.deterministic), kept_memory(device):
                held_out = GraphBatch.collate(run.validation).to(device, torch.float32)
                model.chosen = self.choose(model, held_out, replicas)
        if recipe.refinement is not None:
            refine(model, recipe, self.level, run, replicas)
        return model

    def choose(self, model: ProxyModel, held_out: GraphBatch, replicas: Replicas) -> FieldChoice:
        """The combination that is best on validation graphs."""
        assert held_out.y is not None  # the trainer has refused graphs without labels
        choose = choose_combination if self.recipe.selection == "grid" else fit_combination
        targets = replicas.pooled(self.ensemble).targets(held_out.y)
        return choose(
            *model.logits(held_out), targets, held_out.topology, self.level, self.recipe.grid, self.recipe.damping
        )
