"""Networks that predict pseudomarginals: one for nodes and one for edges (Eq. 7 and 8), or one for both."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from accord.encoders import Encoder, Noise, ReplicaLinear, Scorer
from accord.graphs import GraphBatch
from accord.learning.training import PartOptions

EDGE_KEY = 500_009  # the edge network's weights and dropout must not repeat the node network's


class NodePart(nn.Module):
    """The node network: scores of every state at every node (Eq. 7)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Logits [R, nodes, states]."""
        return self.encoder(batch, noise).transpose(0, 1)  # type: ignore[no-any-return]


class EdgePart(nn.Module):
    """The edge network: scores of every pair of states at every edge (Eq. 8)."""

    def __init__(self, encoder: Encoder, scorer: Scorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = scorer

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Logits [R, edges, states, states]."""
        return self.scorer(self.encoder(batch, noise), batch, noise)  # type: ignore[no-any-return]


class SharedPart(nn.Module):
    """One encoder for both, u_s = v_s: a linear head scores nodes, a scorer edges."""

    def __init__(self, encoder: Encoder, head: ReplicaLinear, scorer: Scorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.scorer = scorer

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """Logits [R, nodes, states] and [R, edges, states, states]."""
        hidden = self.encoder(batch, noise)
        return self.head(hidden).transpose(0, 1), self.scorer(hidden, batch, noise)


class FieldNetworks(ABC):
    """The networks that score the nodes and edges of a field, and the names under which they are trained."""

    parts: dict[str, nn.Module]  # what is trained, by name
    edge: EdgePart | None  # the edge network; None if one network scores nodes and edges

    @abstractmethod
    def logits(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """Scores of nodes [R, nodes, states] and of edges [R, edges, states, states]."""

    def field_logits(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, ...]:
        """Scores of everything that has potentials."""
        return self.logits(batch, noise)

    @abstractmethod
    def node_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of nodes [R, nodes, states]."""

    @abstractmethod
    def edge_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of edges [R, edges, states, states]."""

    @abstractmethod
    def options(self, node: PartOptions, edge: PartOptions) -> dict[str, PartOptions]:
        """How each part is updated, given the options of the node and of the edge network."""

    @abstractmethod
    def label_smoothing(self, options: Mapping[str, PartOptions]) -> tuple[float, float]:
        """Label smoothing of the node loss and of the edge loss, given the options of each part."""

    @abstractmethod
    def part_scores(self, node: Tensor, edge: Tensor) -> dict[str, Tensor]:
        """Score of each part [R], given the scores of node and edge predictions."""

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "FieldNetworks":
        """The same networks made of other modules of the same names."""
        return type(self)(**parts)


class SeparateNetworks(FieldNetworks):
    """A node network and an edge network."""

    edge: EdgePart

    def __init__(self, node: NodePart, edge: EdgePart) -> None:
        self.node, self.edge = node, edge
        self.parts = {"node": node, "edge": edge}

    def logits(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """Scores of both networks."""
        return self.node_logits(batch, noise), self.edge_logits(batch, noise)

    def node_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of the node network."""
        logits: Tensor = self.node(batch, noise)
        return logits

    def edge_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of the edge network."""
        logits: Tensor = self.edge(batch, None if noise is None else edge_noise(noise))
        return logits

    def options(self, node: PartOptions, edge: PartOptions) -> dict[str, PartOptions]:
        """Each network has its own."""
        return {"node": node, "edge": edge}

    def label_smoothing(self, options: Mapping[str, PartOptions]) -> tuple[float, float]:
        """Each network has its own."""
        return options["node"].label_smoothing, options["edge"].label_smoothing

    def part_scores(self, node: Tensor, edge: Tensor) -> dict[str, Tensor]:
        """Each network is kept by its own score."""
        return {"node": node, "edge": edge}


class SharedNetworks(FieldNetworks):
    """One network that scores nodes and edges."""

    edge = None

    def __init__(self, shared: SharedPart) -> None:
        self.shared = shared
        self.parts = {"shared": shared}

    def logits(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """Scores of nodes and edges from one run of the encoder."""
        both: tuple[Tensor, Tensor] = self.shared(batch, noise)
        return both

    def node_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of nodes."""
        return self.logits(batch, noise)[0]

    def edge_logits(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores of edges."""
        return self.logits(batch, noise)[1]

    def options(self, node: PartOptions, edge: PartOptions) -> dict[str, PartOptions]:
        """The node network's options serve the one network; the edge network's are not used."""
        return {"shared": node}

    def label_smoothing(self, options: Mapping[str, PartOptions]) -> tuple[float, float]:
        """The same for both losses."""
        return options["shared"].label_smoothing, options["shared"].label_smoothing

    def part_scores(self, node: Tensor, edge: Tensor) -> dict[str, Tensor]:
        """The mean of both scores; without a labelled edge, the node score alone."""
        return {"shared": torch.stack([node.double(), edge.double()]).nanmean(0)}


def edge_noise(noise: Noise) -> Noise:
    """Dropout of the edge network in the same step, but not the same masks."""
    return noise.with_seeds(EDGE_KEY)
