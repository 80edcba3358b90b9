"""Order 3: a trained SPN gets a third network, of triangles, and a field with potentials on nodes, edges and triangles.

The networks of nodes and edges, and how they combine, are those of order 2. So the two orders differ in the triangles
alone, and where these gain nothing on validation data, order 3 gives the labels of order 2.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.field.triangles import TriangleField
from accord.graphs import GraphBatch, Topology, batches_of
from accord.inference import Semiring
from accord.inference.triangles import AnyBeliefs, AnyField
from accord.learning import Replicas, TrainingRun
from accord.learning.objectives import (
    TRIANGLE_KEY,
    FieldNetworks,
    TriangleNetworks,
    TriangleObjective,
    TrianglePart,
    triple_numbers,
)
from accord.learning.selection import FieldChoice, TriangleChoice, choose_triangles
from accord.learning.training import determinism, kept_memory
from accord.methods._model import Choice, FieldModel, Shape
from accord.methods._proxy import ProxyModel
from accord.methods._refinement import refine
from accord.methods._stage import train_stage
from accord.methods._validated import KEYS, measure
from accord.methods.recipes._recipe import SPNRecipe

if TYPE_CHECKING:
    from accord.methods._spn import StructuredProxyNetwork

STAGE = "triangles"  # subfolder of its checkpoint


class TriangleModel(ProxyModel):
    """Networks of nodes, edges and triangles, and how they combine.

    Args:
        networks: the networks.
        chosen: how those of nodes and edges combine; triangles do not count until `triangle_choice` is set.
        damping: of propagation.
    """

    triangle_choice: TriangleChoice

    def __init__(self, networks: TriangleNetworks, chosen: FieldChoice, damping: float) -> None:
        super().__init__(networks.pairs, chosen, damping)
        self.parts, self.whole_networks = networks.parts, networks

    @property
    def chosen(self) -> FieldChoice:
        """How the networks of nodes and edges combine; if set, triangles no longer count."""
        return self.triangle_choice.pairs

    @chosen.setter
    def chosen(self, chosen: FieldChoice) -> None:
        self.triangle_choice = TriangleChoice.default(chosen)

    @property
    def refined(self) -> FieldNetworks:
        """What refinement trains: the triangle network only where it counts."""
        return self.networks if self.triangle_choice.is_pairwise else self.whole_networks

    @torch.no_grad()
    def triangle_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, triangles, states, states, states] of the triangle network."""
        scores = self.ensemble.average_triangles(self.whole_networks.triangle(batch).float())
        barred = self.validated.barred(scores.shape[-1], scores)
        if barred is None:
            return scores
        for axis in range(-3, 0):
            at = barred.reshape(len(barred), 1, *(-1 if place == axis else 1 for place in range(-3, 0)))
            scores = scores.masked_fill(at, -torch.inf)
        return scores

    def scored_field(self, batch: GraphBatch) -> tuple[AnyField, Tensor, Tensor]:
        """The field, and the scores of nodes and edges, from one run of the networks."""
        node, edge = self.logits(batch)
        if self.triangle_choice.is_pairwise:
            return self.chosen.field(node, edge, batch.topology), node, edge
        return self.triangle_choice.field(node, edge, self.triangle_logits(batch), batch.topology), node, edge

    def field_of_scores(self, *scores: Tensor, topology: Topology) -> AnyField:
        """The field of scores of nodes and edges, and of triangles where they count."""
        if self.triangle_choice.is_pairwise:
            return super().field_of_scores(*scores, topology=topology)
        node, edge, triangle = scores
        return self.triangle_choice.field(node, edge, triangle, topology)

    def labels_of(self, field: AnyField) -> Tensor:
        """Joint labels [R, nodes]."""
        if not isinstance(field, TriangleField):
            return super().labels_of(field)
        return self.triangle_choice.labels(field, self.damping)

    def beliefs_of(self, field: AnyField, semiring: Semiring = "sum") -> AnyBeliefs:
        """Beliefs of each replica, with triangles where they count."""
        if not isinstance(field, TriangleField):
            return super().beliefs_of(field, semiring)
        return self.triangle_choice.beliefs(field, semiring, self.damping)

    def combination(self) -> Choice:
        """How the networks combine, as plain values."""
        return self.triangle_choice.to_config()

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over a choice of combination and solver settings."""
        FieldModel.choose(self, choice)
        own = {name: values for name, values in choice.items() if name not in KEYS}
        self.triangle_choice = TriangleChoice.from_config(own).to(self.device)

    def to(self, device: torch.device) -> None:
        """Move networks and choice."""
        FieldModel.to(self, device)
        self.triangle_choice = self.triangle_choice.to(device)


def build_triangle_part(recipe: SPNRecipe, shape: Shape, replicas: Replicas) -> TrianglePart:
    """The triangle network of a recipe, untrained."""
    own = recipe.triangles
    assert own is not None  # the caller has checked
    keys = [key + TRIANGLE_KEY for key in replicas.keys]
    encoder = (own.encoder or recipe.edge_encoder).build(shape.num_inputs, own.channels, keys)
    return TrianglePart(encoder, own.scorer_for(shape.num_states).build(encoder.out_channels, shape.num_states, keys))


def extend(
    model: ProxyModel, method: "StructuredProxyNetwork", run: TrainingRun, shape: Shape, replicas: Replicas
) -> TriangleModel:
    """A trained SPN with a triangle network beside its own, refined where that is asked for.

    Args:
        model: trained, with its combination chosen. A `TriangleModel` keeps its triangle network as a start.
        method: with a recipe of order 3.
        run: graphs, checkpoint folder and callback.
        shape: sizes that the data fix.
        replicas: seeds and tasks.
    """
    recipe = method.recipe
    assert recipe.triangles is not None  # the caller has checked
    begun = isinstance(model, TriangleModel) and run.start is not None
    extended = model if isinstance(model, TriangleModel) else _around(model, recipe, shape, replicas)
    part = extended.whole_networks.triangle
    labelled = _labelled(run, replicas, shape.num_states)
    if bool(labelled.any()):
        objective = TriangleObjective(part, recipe.triangles.part or recipe.edge)
        stage = run.stage(STAGE)
        train_stage(extended.history, objective, replicas, recipe.training, stage, begun, extended.kept)
        extended.to(extended.device)
    own = replicas.pooled(method.ensemble)
    with determinism(recipe.training.deterministic), kept_memory(extended.device), torch.no_grad():
        held_out = GraphBatch.collate(run.validation).to(extended.device, torch.float32)
        assert held_out.y is not None  # the trainer has refused graphs without labels
        shares = (recipe.shrinkage / (labelled + recipe.shrinkage)) if recipe.shrinkage else torch.zeros(len(labelled))
        if bool(labelled.any()):
            extended.triangle_choice = choose_triangles(
                *extended.logits(held_out),
                extended.triangle_logits(held_out),
                own.targets(held_out.y),
                held_out.topology,
                method.level,
                recipe.triangles.grid,
                recipe.damping,
                extended.chosen,
                shares[: own.count].to(extended.device),
            )
    if recipe.refinement is not None:
        refine(extended, recipe, method.level, run, replicas)
    with determinism(recipe.training.deterministic), kept_memory(extended.device):
        weight = extended.chosen.node_weight if recipe.rule == "careful" else None
        extended.validated = measure(extended, run, own, method.level, weight)
    return extended


def check_order(order: object) -> None:
    """Refuse orders other than 2 and 3."""
    if isinstance(order, bool) or order not in (2, 3):
        raise OptionError(f"NodeClassifier: order is {order!r}; give 2 (pairs) or 3 (pairs and triangles).")


def _around(model: ProxyModel, recipe: SPNRecipe, shape: Shape, replicas: Replicas) -> TriangleModel:
    """A model of order 3 with the networks and the choice of one of order 2."""
    networks = TriangleNetworks(model.networks, build_triangle_part(recipe, shape, replicas))
    networks.triangle.to(model.device)
    extended = TriangleModel(networks, model.chosen, model.damping)
    extended.ensemble, extended.kept, extended.validated = model.ensemble, dict(model.kept), model.validated
    extended.history, extended.transitions = list(model.history), model.transitions
    return extended


def _labelled(run: TrainingRun, replicas: Replicas, num_states: int) -> Tensor:
    """How many training triangles have three labels, of each replica."""
    counts = torch.zeros(replicas.count, dtype=torch.long)
    for train in batches_of(run.train):
        if train.y is not None:
            counts += (triple_numbers(replicas.targets(train.y), train.topology, num_states) >= 0).sum(-1).cpu()
    return counts
