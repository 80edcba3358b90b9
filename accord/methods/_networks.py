"""The two kinds of models, with and without an edge network, and how their networks are built from a recipe."""

from abc import abstractmethod

import torch
from torch import Tensor

from accord.encoders import ReplicaLinear, Scorer
from accord.errors import OptionError
from accord.evaluation import EDGE, NODE
from accord.field import PairwiseField, Transitions
from accord.graphs import GraphBatch, Topology
from accord.graphs.sequences import sequence_layout
from accord.inference import Beliefs, Semiring, propagate
from accord.inference.triangles import AnyField
from accord.learning import Replicas
from accord.learning.objectives import (
    EDGE_KEY,
    EdgePart,
    FieldNetworks,
    NodePart,
    SeparateNetworks,
    SharedNetworks,
    SharedPart,
)
from accord.methods._model import Answer, FieldChange, FieldModel, Shape
from accord.methods.recipes._recipe import PairRecipe, Recipe

CONSTRAINED_DAMPING = 0.5  # of propagation where only constraints couple the nodes: without it, labels may alternate


class PairModel(FieldModel):
    """A node network and an edge network, or one for both; subclasses make a field of their scores.

    Args:
        networks: the networks.
        damping: of belief propagation.
    """

    transitions: Transitions | None = None  # that labels of sequences never have

    def __init__(self, networks: FieldNetworks, damping: float) -> None:
        super().__init__(networks.parts)
        self.networks, self.damping = networks, damping

    def barred(self, node: Tensor, edge: Tensor, topology: Topology) -> tuple[Tensor, Tensor]:
        """Scores with -inf for transitions that are ruled out."""
        if self.transitions is None:
            return node, edge
        layout = sequence_layout(topology, f"method {self.method!r} with transitions")
        return self.transitions.bar(node, edge, topology.edge_index, layout)

    @abstractmethod
    def field_of(self, node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
        """The field of scores [R, nodes, states] and [R, edges, states, states]."""

    def scored_field(self, batch: GraphBatch) -> tuple[AnyField, Tensor, Tensor]:
        """The field, and the scores of nodes and edges, from one run of the networks."""
        node, edge = self.logits(batch)
        return self.field_of(node, edge, batch.topology), node, edge

    def field(self, batch: GraphBatch) -> AnyField:
        """The field of the networks' scores."""
        return self.scored_field(batch)[0]

    def field_and_scores(self, batch: GraphBatch) -> tuple[AnyField, Tensor]:
        """The field, and the node network's scores [R, nodes, states], from one run of the networks."""
        field, node, _ = self.scored_field(batch)
        return field, node

    def answers(self, batch: GraphBatch, change: FieldChange | None = None) -> dict[str, Answer]:
        """Node network, edge network and the field of both."""
        field, node, edge = self.scored_field(batch)
        return {
            NODE: Answer.most_likely(node.softmax(-1)),
            EDGE: Answer.most_likely(self._by_edges_alone(edge, batch.topology)),
            self.method: self.answer_of(field if change is None else change(field)),
        }

    def _by_edges_alone(self, edge: Tensor, topology: Topology) -> Tensor:
        """Node probabilities by the edge network; a node without edges must not get a state that was never seen."""
        probabilities = edge_marginals(edge, topology)
        if not any(self.validated.unseen):
            return probabilities
        return self.possible(probabilities.log()).softmax(-1)

    def joint_and_alone(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Joint labels [R, nodes], and those of the node network alone, from one run of the networks."""
        field, node, _ = self.scored_field(batch)
        return self.labels_of(field), node.argmax(-1)

    @torch.no_grad()
    def agreement(self, batch: GraphBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """The node network's log-probabilities [R, nodes, states], and how likely equal labels are at each edge.

        Returns:
            The log-probabilities, and for each part of the model [R, edges].
        """
        field, node, edge = self.scored_field(batch)
        alone = node.log_softmax(-1)
        source, target = (alone[:, end].exp() for end in batch.topology.edge_index)
        joint = self.beliefs_of(field, "sum").edge.exp()
        pairs = edge.flatten(-2).softmax(-1).view_as(edge)
        same = {NODE: (source * target).sum(-1)}
        same |= {part: p.diagonal(dim1=-2, dim2=-1).sum(-1) for part, p in ((EDGE, pairs), (self.method, joint))}
        return alone, same

    @torch.no_grad()
    def logits(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Scores [R, nodes, states] and [R, edges, states, states]."""
        node, edge = self.networks.logits(batch)
        node, edge = self.ensemble.average_nodes(node.float()), self.ensemble.average_edges(edge.float())
        return self.barred(self.possible(node), self.possible_pairs(edge), batch.topology)

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network."""
        return self.possible(self.ensemble.average_nodes(self.networks.node_logits(batch).float()))

    @torch.no_grad()
    def edge_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, edges, states, states] of the edge network."""
        return self.possible_pairs(self.ensemble.average_edges(self.networks.edge_logits(batch).float()))


class FlatModel(FieldModel):
    """A model that labels each node by itself: the edge tables of its field are zeros."""

    @abstractmethod
    def log_probabilities_of(self, logits: Tensor, batch: GraphBatch) -> Tensor:
        """Log-probabilities [R, nodes, states] of each node's label, given the node network's scores."""

    def log_probabilities(self, batch: GraphBatch) -> Tensor:
        """Log-probabilities [R, nodes, states] of each node's label."""
        return self.log_probabilities_of(self.node_logits(batch), batch)

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network."""
        logits: Tensor = self.parts["node"](batch)
        return self.possible(self.ensemble.average_nodes(logits.float()))

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Node marginals, and edge tables of zeros."""
        return flat_field(self.log_probabilities(batch), batch.topology)

    def field_and_scores(self, batch: GraphBatch) -> tuple[PairwiseField, Tensor]:
        """The field, and the node network's scores [R, nodes, states], from one run of the network."""
        logits = self.node_logits(batch)
        return flat_field(self.log_probabilities_of(logits, batch), batch.topology), logits

    def labels_of(self, field: AnyField) -> Tensor:
        """Each node's best state [R, nodes]; joint labels where the edge tables hold constraints or preferences."""
        assert isinstance(field, PairwiseField)
        if bool(field.edge.any()):
            return propagate(field, semiring="max", damping=CONSTRAINED_DAMPING).decode()
        return field.node.argmax(-1)

    def labels(self, batch: GraphBatch) -> Tensor:
        """Each node's best state [R, nodes]; no field is needed."""
        return self.log_probabilities(batch).argmax(-1)

    def joint_and_alone(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Labels [R, nodes], and those of the node network alone, which runs once."""
        logits = self.node_logits(batch)
        return self.log_probabilities_of(logits, batch).argmax(-1), logits.argmax(-1)

    def beliefs_of(self, field: AnyField, semiring: Semiring = "sum") -> Beliefs:
        """Beliefs of a field without interactions, or with constraints and preferences alone."""
        assert isinstance(field, PairwiseField)
        free = not bool(field.edge.any()) or field.peeling.is_forest
        return propagate(field, semiring=semiring, damping=0.0 if free else CONSTRAINED_DAMPING)

    def answers(self, batch: GraphBatch, change: FieldChange | None = None) -> dict[str, Answer]:
        """The node network alone, and what the model makes of its scores."""
        field, logits = self.field_and_scores(batch)
        whole = self.answer_of(field if change is None else change(field))
        if self.method == NODE:
            return {NODE: whole}
        return {NODE: Answer.most_likely(logits.softmax(-1)), self.method: whole}


def flat_field(node: Tensor, topology: Topology) -> PairwiseField:
    """A field of log-probabilities [R, nodes, states] and edge tables of zeros."""
    states = node.shape[-1]
    flat = node.new_zeros(()).expand(topology.num_edges, states, states)
    return PairwiseField(topology.edge_index, node, flat, topology.graph, topology.num_graphs)


def edge_marginals(tables: Tensor, topology: Topology) -> Tensor:
    """Node probabilities by the edge network alone: the marginals of its tables, averaged as logs over a node's edges.

    Args:
        tables: [R, edges, states, states], scores.
        topology: the graphs.

    Returns:
        [R, nodes, states], probabilities; at a node without edges all states are equally likely.
    """
    logs = tables.flatten(-2).log_softmax(-1).view_as(tables)
    source, target = topology.edge_index
    total = logs.new_zeros(logs.shape[0], topology.num_nodes, logs.shape[-1])
    total.index_add_(1, source, logs.logsumexp(-1)).index_add_(1, target, logs.logsumexp(-2))
    degree = torch.bincount(topology.edge_index.flatten(), minlength=topology.num_nodes)
    return (total / degree.clamp_min(1)[:, None]).softmax(-1)


def build_node_part(recipe: Recipe, shape: Shape, replicas: Replicas) -> NodePart:
    """The node network of a recipe, untrained."""
    encoder = recipe.encoder.build(shape.num_inputs, shape.num_states, replicas.keys)
    if encoder.out_channels != shape.num_states:
        raise OptionError(
            f"encoder {recipe.encoder.kind!r} gives {encoder.out_channels} numbers a node, but there are "
            f"{shape.num_states} states. It can serve edges only; choose another for nodes."
        )
    return NodePart(encoder)


def build_networks(recipe: PairRecipe, shape: Shape, replicas: Replicas) -> FieldNetworks:
    """Both networks of a recipe, untrained."""
    if recipe.shared:
        encoder = recipe.encoder.build(shape.num_inputs, recipe.edge_channels, replicas.keys)
        head = ReplicaLinear(encoder.out_channels, shape.num_states, replicas.keys, "head")
        return SharedNetworks(SharedPart(encoder, head, _scorer(recipe, encoder.out_channels, shape, replicas)))
    return SeparateNetworks(build_node_part(recipe, shape, replicas), build_edge_part(recipe, shape, replicas))


def build_edge_part(recipe: PairRecipe, shape: Shape, replicas: Replicas) -> EdgePart:
    """The edge network of a recipe, untrained."""
    encoder = recipe.edge_encoder.build(shape.num_inputs, recipe.edge_channels, edge_keys(replicas))
    return EdgePart(encoder, _scorer(recipe, encoder.out_channels, shape, replicas))


def edge_keys(replicas: Replicas) -> list[int]:
    """Seeds of the edge network, apart from the node network's."""
    return [key + EDGE_KEY for key in replicas.keys]


def _scorer(recipe: PairRecipe, channels: int, shape: Shape, replicas: Replicas) -> Scorer:
    return recipe.scorer.build(channels, shape.num_states, edge_keys(replicas), shape.edge_attributes)
