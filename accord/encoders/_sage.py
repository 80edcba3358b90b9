"""GraphSAGE with mean aggregation (Hamilton et al. 2017)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._encoder import EncoderSpec
from accord.encoders._inputs import Signal
from accord.encoders._linear import ReplicaLinear
from accord.encoders._noise import Noise
from accord.encoders._operators import mean_operator
from accord.encoders._stack import Layer, StackedEncoder
from accord.graphs import GraphBatch


@dataclass(frozen=True)
class GraphSAGE(EncoderSpec):
    """Stack of GraphSAGE layers; the defaults are the paper's.

    Args:
        hidden: channels between the layers.
        layers: how many.
        dropout: between the layers.
        input_dropout: on the features.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output.
        activation: between the layers.
    """

    kind = "sage"
    hidden: int = 64
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
            lambda number, inputs, outputs: SAGELayer(inputs, outputs, seeds, f"layers.{number}"),
            seeds,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            normalisation=self.normalisation,
            skip=self.skip,
            activation=self.activation,
        )


class SAGELayer(Layer):
    """One linear map of the neighbours' mean, one of the node itself, and a bias."""

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.neighbours = ReplicaLinear(in_channels, out_channels, seeds, f"{name}.neighbours")
        self.own = ReplicaLinear(in_channels, out_channels, seeds, f"{name}.own", bias=False)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """One layer."""
        operator = mean_operator(batch, self.own.weight.dtype)
        mean = signal.aggregated_linear(operator, self.neighbours.weight, self.neighbours.bias)
        return mean + signal.linear(self.own.weight)
