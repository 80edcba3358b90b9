"""Networks that predict pseudomarginals: one for nodes, one for edges, or one for both."""

from collections.abc import Mapping

from torch import Tensor, nn

from accord.encoders import Encoder, Noise, ReplicaLinear, Scorer
from accord.graphs import GraphBatch

EDGE_KEY = 500_009  # the edge network's weights and dropout must not repeat the node network's


class NodePart(nn.Module):
    """The node network: scores of every state at every node (Eq. 6)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Logits [R, nodes, states]."""
        return self.encoder(batch, noise).transpose(0, 1)  # type: ignore[no-any-return]


class EdgePart(nn.Module):
    """The edge network: scores of every pair of states at every edge (Eq. 7)."""

    def __init__(self, encoder: Encoder, scorer: Scorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = scorer

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Logits [R, edges, states, states]."""
        return self.scorer(self.encoder(batch, noise), batch, noise)  # type: ignore[no-any-return]


class SharedPart(nn.Module):
    """One encoder for both, u_s = v_s: a linear head reads nodes off it, a scorer edges."""

    def __init__(self, encoder: Encoder, head: ReplicaLinear, scorer: Scorer) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.scorer = scorer

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[Tensor, Tensor]:
        """Logits [R, nodes, states] and [R, edges, states, states]."""
        hidden = self.encoder(batch, noise)
        return self.head(hidden).transpose(0, 1), self.scorer(hidden, batch, noise)


def network_logits(
    parts: Mapping[str, nn.Module], batch: GraphBatch, noise: Noise | None = None
) -> tuple[Tensor, Tensor]:
    """Scores [R, nodes, states] and [R, edges, states, states] of networks called "node" and "edge", or "shared"."""
    if "shared" in parts:
        both: tuple[Tensor, Tensor] = parts["shared"](batch, noise)
        return both
    return parts["node"](batch, noise), parts["edge"](batch, None if noise is None else edge_noise(noise))


def edge_noise(noise: Noise) -> Noise:
    """Dropout of the edge network in the same step, but not the same masks."""
    return Noise(noise.seeds + EDGE_KEY, noise.step)
