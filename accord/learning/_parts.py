"""Networks that predict pseudomarginals: one for nodes, one for edges, or one for both."""

from torch import Tensor, nn

from accord.encoders import Encoder, Noise, ReplicaLinear, Scorer
from accord.graphs import GraphBatch


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
