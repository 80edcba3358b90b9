"""The Structured Proxy Network: two networks trained apart, and one field that makes their labels agree."""

from functools import partial

import torch

from accord.graphs import GraphBatch, batches_of
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import ProxyObjective, TriangleNetworks
from accord.learning.selection import (
    FieldChoice,
    Shrinkage,
    choose_carefully,
    choose_combination,
    fit_combination,
)
from accord.learning.training import determinism, kept_memory
from accord.methods._ensemble import Ensemble
from accord.methods._model import FieldModel, Method, Shape
from accord.methods._networks import build_networks
from accord.methods._proxy import ProxyModel
from accord.methods._refinement import refine
from accord.methods._stage import train_stage
from accord.methods._triangles import TriangleModel, build_triangle_part, extend
from accord.methods._validated import measure, times_denser, unseen_states
from accord.methods.recipes._recipe import SPNRecipe


class StructuredProxyNetwork(Method):
    """Solves the proxy problem, chooses how the networks combine, and refines the field where that is asked for."""

    name = "spn"
    recipe_type = SPNRecipe
    recipe: SPNRecipe
    simple = True

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes."""
        recipe = self.recipe
        trainings = 1 if recipe.triangles is None else 2
        return trainings * recipe.training.max_epochs + (recipe.refinement.max_epochs if recipe.refinement else 0)

    def build(self, shape: Shape, replicas: Replicas) -> ProxyModel:
        """An untrained model that combines its networks by the first candidate."""
        chosen = FieldChoice.default(self.recipe.grid.candidates()[0], replicas.pooled(self.ensemble).count)
        networks = build_networks(self.recipe, shape, replicas)
        if self.recipe.triangles is None:
            model = ProxyModel(networks, chosen, self.recipe.damping)
        else:
            whole = TriangleNetworks(networks, build_triangle_part(self.recipe, shape, replicas))
            model = TriangleModel(whole, chosen, self.recipe.damping)
        model.ensemble, model.transitions = Ensemble.of(replicas, self.ensemble), self.recipe.transitions
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
            model = self.settle(model, run, shape, replicas)
            return model if recipe.triangles is None else extend(model, self, run, shape, replicas)
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
        if recipe.triangles is not None:  # refined and measured with triangles
            return model
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
        counts = torch.zeros(2, replicas.count, dtype=torch.long)
        for train in batches_of(run.train):
            if train.y is not None:
                known = replicas.targets(train.labelled_nodes)
                source, target = train.topology.edge_index
                counts += torch.stack([known.sum(-1), (known[:, source] & known[:, target]).sum(-1)]).cpu()
        nodes, edges = self.recipe.shrinkage / (counts.to(device) + self.recipe.shrinkage)
        return nodes, edges
