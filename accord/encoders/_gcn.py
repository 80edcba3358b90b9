"""Graph convolutional network (Kipf and Welling 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders import _initial
from accord.encoders._encoder import EncoderSpec
from accord.encoders._inputs import Signal
from accord.encoders._noise import Noise
from accord.encoders._operators import gcn_operator
from accord.encoders._stack import Layer, StackedEncoder
from accord.graphs import GraphBatch


@dataclass(frozen=True)
class GCN(EncoderSpec):
    """Stack of graph convolutions; the defaults are the paper's.

    Args:
        hidden: channels between the layers.
        layers: how many.
        dropout: between the layers.
        input_dropout: on the features.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output.
        activation: between the layers.
    """

    kind = "gcn"
    hidden: int = 16
    layers: int = 2
    dropout: float = 0.0
    input_dropout: float = 0.0
    normalisation: str | None = None
    skip: bool = False
    activation: str = "relu"

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> StackedEncoder:
        """One replica per seed."""
        return StackedEncoder(
            [in_channels, *[self.hidden] * (self.layers - 1), out_channels],
            lambda number, inputs, outputs: GCNLayer(inputs, outputs, seeds, f"layers.{number}"),
            seeds,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            normalisation=self.normalisation,
            skip=self.skip,
            activation=self.activation,
        )


class GCNLayer(Layer):
    """Normalised sum over neighbours and self of linear maps, plus a bias."""

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.weight = _initial.glorot(seeds, f"{name}.weight", (in_channels, out_channels))
        self.bias = _initial.constant(seeds, (out_channels,), 0.0)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """One convolution."""
        return signal.aggregated_linear(gcn_operator(batch, self.weight.dtype), self.weight, self.bias)
