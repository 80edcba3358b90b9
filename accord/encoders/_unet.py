"""Graph U-Net (Gao and Ji 2019): PyTorch Geometric's, behind the adapter."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch_geometric.nn import GraphUNet as PyGGraphUNet
from torch_geometric.utils import dropout_edge

from accord.encoders._adapter import AdaptedEncoder, Adapter
from accord.encoders._encoder import EncoderSpec
from accord.encoders._operators import silence_beta_warning
from accord.errors import OptionError


@dataclass(frozen=True)
class GraphUNet(EncoderSpec):
    """Pooling to ever smaller graphs and back; the defaults are the paper's.

    Args:
        hidden: channels of all layers.
        depth: how many times nodes are pooled.
        pool_ratios: share of nodes that stay, one number for all levels or one for each.
        dropout: on the features, before anything else.
        edge_dropout: share of edges taken out in each training step.
        activation: between the layers.
    """

    kind = "unet"
    hidden: int = 64
    depth: int = 3
    pool_ratios: float | tuple[float, ...] = 0.5
    dropout: float = 0.0
    edge_dropout: float = 0.2
    activation: str = "relu"

    def __post_init__(self) -> None:
        super().__post_init__()
        ratios = self.pool_ratios if isinstance(self.pool_ratios, tuple) else (self.pool_ratios,)
        if len(ratios) not in (1, self.depth) or not all(0.0 < ratio <= 1.0 for ratio in ratios):
            raise OptionError(
                f"GraphUNet: pool_ratios={self.pool_ratios}; give one share, above 0 and up to 1, "
                f"or {self.depth} of them."
            )

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> AdaptedEncoder:
        """One copy per seed."""
        adapter = Adapter(lambda inputs, outputs: _UNet(self, inputs, outputs), pass_graph=True)
        return adapter.build(in_channels, out_channels, seeds)


class _UNet(nn.Module):
    """The network with dropout on features and edges."""

    def __init__(self, spec: GraphUNet, in_channels: int, out_channels: int) -> None:
        super().__init__()
        silence_beta_warning()
        ratios = list(spec.pool_ratios) if isinstance(spec.pool_ratios, tuple) else spec.pool_ratios
        self.spec = spec
        self.net = PyGGraphUNet(in_channels, spec.hidden, out_channels, spec.depth, ratios, act=spec.activation)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        x = nn.functional.dropout(x, self.spec.dropout, self.training)
        if self.training and self.spec.edge_dropout:
            edge_index, _ = dropout_edge(edge_index, self.spec.edge_dropout, force_undirected=True)
        encoded: Tensor = self.net(x, edge_index, batch)
        return encoded
