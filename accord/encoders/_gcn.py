"""Graph convolutional network (Kipf and Welling 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._stack import Layer, StackSpec
from accord.encoders.replica import _initial
from accord.encoders.replica._inputs import Signal
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import gcn_operator
from accord.graphs import GraphBatch


class GCNLayer(Layer):
    """Normalised sum over neighbours and self of linear maps, plus a bias."""

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.weight = _initial.glorot(seeds, f"{name}.weight", (in_channels, out_channels))
        self.bias = _initial.constant(seeds, (out_channels,), 0.0)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """One convolution."""
        return signal.aggregated_linear(gcn_operator(batch, self.weight.dtype), self.weight, self.bias)


@dataclass(frozen=True)
class GCN(StackSpec):
    """Stack of graph convolutions; the defaults are the paper's."""

    kind = "gcn"
    layer = GCNLayer
    hidden: int = 16
