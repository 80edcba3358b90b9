"""Networks that predict pseudomarginals: one for nodes, one for edges."""

from torch import Tensor, nn

from accord.encoders import Encoder, Noise, Scorer
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
