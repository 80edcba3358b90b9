"""Graph convolutional network (Kipf and Welling 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._stack import Layer, UniformStackSpec
from accord.encoders.replica import Noise, Signal, constant_weights, gcn_operator, glorot_weights
from accord.graphs import GraphBatch


class GCNLayer(Layer):
    """A linear map, a normalised sum over neighbours and self, and a bias."""

    on_parts = True

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.weight = glorot_weights(seeds, f"{name}.weight", (in_channels, out_channels))
        self.bias = constant_weights(seeds, (out_channels,), 0.0)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """One convolution."""
        return signal.aggregated_linear(gcn_operator(batch, self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True)
class GCN(UniformStackSpec):
    """Stack of graph convolutions; the defaults are the paper's."""

    kind = "gcn"
    layer = GCNLayer
    hidden: int = 16
