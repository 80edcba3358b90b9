"""The Structured Proxy Network: two networks trained apart, one field that makes their labels agree."""

import torch
from torch import Tensor, nn

from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, Semiring
from accord.learning import (
    Chosen,
    ProxyObjective,
    Replicas,
    TrainingRun,
    choose_combination,
    determinism,
    fit_combination,
    kept_memory,
)
from accord.methods._model import Method, Shape
from accord.methods._networks import NetworkPair, build_parts, part_options
from accord.methods._recipe import SPNRecipe
from accord.methods._refinement import refine
from accord.methods._stage import train_stage


class ProxyModel(NetworkPair):
    """Node network and edge network (or one for both), and how they combine."""

    def __init__(self, parts: dict[str, nn.Module], chosen: Chosen, damping: float) -> None:
        super().__init__(parts)
        self.chosen, self.damping = chosen, damping

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Pseudomarginals combined (Eq. 5)."""
        return self.chosen.field(*self.logits(batch), batch.topology)

    def labels(self, batch: GraphBatch) -> Tensor:
        """Joint labels [R, nodes]."""
        return self.chosen.labels(self.field(batch), self.damping)

    def beliefs(self, batch: GraphBatch, semiring: Semiring) -> Beliefs:
        """Beliefs of the field."""
        return self.chosen.beliefs(self.field(batch), semiring, self.damping)

    def choice(self) -> dict[str, Tensor]:
        """How the networks combine."""
        return {f"chosen/{name}": value for name, value in self.chosen.tensors().items()}

    def choose(self, choice: dict[str, Tensor]) -> None:
        """Take such a choice."""
        self.chosen = Chosen(**{name.removeprefix("chosen/"): value for name, value in choice.items()})


class StructuredProxyNetwork(Method):
    """Solves the proxy problem, chooses how the networks combine, and refines the field where that is asked for."""

    name = "spn"
    recipe_type = SPNRecipe
    recipe: SPNRecipe

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes."""
        return self.recipe.training.max_epochs + (self.recipe.refinement.max_epochs if self.recipe.refinement else 0)

    def build(self, shape: Shape, replicas: Replicas) -> ProxyModel:
        """An untrained model that combines its networks by the first candidate."""
        chosen = Chosen.unchosen(self.recipe.grid.candidates()[0], replicas.count)
        return ProxyModel(build_parts(self.recipe, shape, replicas), chosen, self.recipe.damping)

    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> ProxyModel:
        """Train; keep the best networks and choose their combination on validation data."""
        model, recipe = self.build(shape, replicas), self.recipe
        objective = ProxyObjective(dict(model.parts), part_options(recipe), self.level, recipe.consistency)
        device = train_stage(model.history, objective, replicas, recipe.training, run)
        if recipe.training.max_epochs:  # what untrained networks say is no ground for a choice
            with determinism(recipe.training.deterministic), kept_memory(device):
                model.chosen = self._choose(
                    model, GraphBatch.collate(run.validation).to(device, torch.float32), replicas
                )
        if recipe.refinement is not None:
            refine(model, recipe, self.level, run, replicas)
        return model

    def _choose(self, model: ProxyModel, held_out: GraphBatch, replicas: Replicas) -> Chosen:
        """How the networks combine best on validation graphs."""
        assert held_out.y is not None  # the trainer has refused graphs without labels
        choose = choose_combination if self.recipe.selection == "grid" else fit_combination
        targets = replicas.targets(held_out.y)
        return choose(
            *model.logits(held_out), targets, held_out.topology, self.level, self.recipe.grid, self.recipe.damping
        )
