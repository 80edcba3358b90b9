"""What trained models are made of: a node network, and for a field an edge network, or one for both."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from accord.encoders import ReplicaLinear, Scorer
from accord.errors import OptionError
from accord.field import PairwiseField
from accord.graphs import GraphBatch, Topology
from accord.inference import Beliefs, Semiring, propagate
from accord.learning import (
    EDGE_KEY,
    EdgePart,
    HistoryRow,
    NodePart,
    PartOptions,
    Replicas,
    SharedPart,
    learned,
    network_logits,
)
from accord.methods._model import Shape
from accord.methods._recipe import PairRecipe, Recipe


class Networks:
    """Trained networks by name; one is called "node", or "shared" where it serves nodes and edges."""

    def __init__(self, parts: Mapping[str, nn.Module]) -> None:
        self.parts = dict(parts)
        self.history: list[HistoryRow] = []

    @torch.no_grad()
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network, each node by itself."""
        logits: Tensor = self.parts["shared"](batch)[0] if "shared" in self.parts else self.parts["node"](batch)
        return logits.float()

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return next(next(iter(self.parts.values())).parameters()).device

    def choice(self) -> dict[str, Tensor]:
        """What was chosen on validation data beside the weights, by name."""
        return {}

    def choose(self, choice: dict[str, Tensor]) -> None:
        """Take such a choice."""

    def to(self, device: torch.device) -> None:
        """Move networks and choice."""
        for part in self.parts.values():
            part.to(device)
        self.choose({name: value.to(device) for name, value in self.choice().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Weights of the networks, and the choice."""
        named = {f"{part}/{name}": value for part in self.parts for name, value in learned(self.parts[part]).items()}
        return named | self.choice()

    @torch.no_grad()
    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put them back."""
        for part, network in self.parts.items():
            for name, value in learned(network).items():
                value.copy_(tensors[f"{part}/{name}"])
        self.choose({name: tensors[name].to(self.device) for name in self.choice()})


class NetworkPair(Networks):
    """Networks called "node" and "edge", or one called "shared"; subclasses make a field of their scores."""

    @torch.no_grad()
    def logits(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Scores [R, nodes, states] and [R, edges, states, states]."""
        node, edge = network_logits(self.parts, batch)
        return node.float(), edge.float()

    @torch.no_grad()
    def edge_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, edges, states, states] of the edge network."""
        logits: Tensor = self.parts["shared"](batch)[1] if "shared" in self.parts else self.parts["edge"](batch)
        return logits.float()


class FlatModel(Networks, ABC):
    """A model whose labels have no bonds between them: its field has edge tables of zeros."""

    @abstractmethod
    def log_probabilities(self, batch: GraphBatch) -> Tensor:
        """Log-probabilities [R, nodes, states] of each node's label."""

    def field(self, batch: GraphBatch) -> PairwiseField:
        """Node marginals, and edge tables of zeros."""
        node, topology = self.log_probabilities(batch), batch.topology
        states = node.shape[-1]
        flat = node.new_zeros(()).expand(topology.num_edges, states, states)
        return PairwiseField(topology.edge_index, node, flat, topology.graph, topology.num_graphs)

    def labels(self, batch: GraphBatch) -> Tensor:
        """Each node's best state [R, nodes]."""
        return self.log_probabilities(batch).argmax(-1)

    def beliefs(self, batch: GraphBatch, semiring: Semiring) -> Beliefs:
        """Beliefs of a field without bonds."""
        return propagate(self.field(batch), semiring=semiring)


def build_node_part(recipe: Recipe, shape: Shape, replicas: Replicas) -> NodePart:
    """The node network of a recipe, untrained."""
    encoder = recipe.encoder.build(shape.num_features, shape.num_states, replicas.keys)
    if encoder.out_channels != shape.num_states:
        raise OptionError(
            f"encoder {recipe.encoder.kind!r} gives {encoder.out_channels} numbers a node, but there are "
            f"{shape.num_states} states. It can serve edges only; choose another for nodes."
        )
    return NodePart(encoder)


def build_parts(recipe: PairRecipe, shape: Shape, replicas: Replicas) -> dict[str, nn.Module]:
    """Both networks of a recipe, untrained."""
    if recipe.shared:
        encoder = recipe.encoder.build(shape.num_features, recipe.edge_channels, replicas.keys)
        head = ReplicaLinear(encoder.out_channels, shape.num_states, replicas.keys, "head")
        return {"shared": SharedPart(encoder, head, _scorer(recipe, encoder.out_channels, shape, replicas))}
    edge_encoder = recipe.edge_encoder.build(shape.num_features, recipe.edge_channels, edge_keys(replicas))
    scorer = _scorer(recipe, edge_encoder.out_channels, shape, replicas)
    return {"node": build_node_part(recipe, shape, replicas), "edge": EdgePart(edge_encoder, scorer)}


def part_options(recipe: PairRecipe) -> dict[str, PartOptions]:
    """How each network of a recipe is updated."""
    return {"shared": recipe.node} if recipe.shared else {"node": recipe.node, "edge": recipe.edge}


def edge_keys(replicas: Replicas) -> Sequence[int]:
    """Seeds of the edge network, apart from the node network's."""
    return [key + EDGE_KEY for key in replicas.keys]


def _scorer(recipe: PairRecipe, channels: int, shape: Shape, replicas: Replicas) -> Scorer:
    return recipe.scorer.build(channels, shape.num_states, edge_keys(replicas), shape.edge_attributes)


def edge_marginals(tables: Tensor, topology: Topology) -> Tensor:
    """What the edge network alone says of nodes: its tables' own sums, averaged as logs over a node's edges.

    Args:
        tables: [R, edges, states, states], scores.
        topology: the graphs.

    Returns:
        [R, nodes, states], probabilities; a node without edges knows nothing: all states alike.
    """
    logs = tables.flatten(-2).log_softmax(-1).view_as(tables)
    source, target = topology.edge_index
    total = logs.new_zeros(logs.shape[0], topology.num_nodes, logs.shape[-1])
    total.index_add_(1, source, logs.logsumexp(-1)).index_add_(1, target, logs.logsumexp(-2))
    degree = torch.bincount(topology.edge_index.flatten(), minlength=topology.num_nodes)
    return (total / degree.clamp_min(1)[:, None]).softmax(-1)
