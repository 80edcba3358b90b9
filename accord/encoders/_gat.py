"""Graph attention network (Velickovic et al. 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._encoder import EncoderSpec
from accord.encoders._stack import Layer, StackedEncoder
from accord.encoders.replica import _initial
from accord.encoders.replica._attention import attend_heads
from accord.encoders.replica._inputs import Signal
from accord.encoders.replica._linear import ReplicaLinear
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import arc_pattern
from accord.graphs import GraphBatch

ATTENTION_LAYER = 500  # numbers of the places of attention dropout start here


@dataclass(frozen=True)
class GAT(EncoderSpec):
    """Stack of attention layers, heads side by side, averaged in the last; the defaults are the paper's.

    Args:
        hidden: channels of each head between the layers.
        heads: how many in each layer; as many layers as numbers.
        dropout: between the layers.
        input_dropout: on the features.
        attention_dropout: on the attention weights.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output, as the authors' code does.
        activation: between the layers.
    """

    kind = "gat"
    hidden: int = 256
    heads: tuple[int, ...] = (4, 4, 6)
    dropout: float = 0.0
    input_dropout: float = 0.0
    attention_dropout: float = 0.0
    normalisation: str | None = None
    skip: bool = True
    activation: str = "elu"

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self.heads)

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> StackedEncoder:
        """One replica per seed."""

        def make_layer(number: int, inputs: int, outputs: int) -> GATLayer:
            last = number == len(self.heads) - 1
            channels = outputs if last else self.hidden
            return GATLayer(inputs, channels, self.heads[number], last, self.attention_dropout, seeds, number)

        return StackedEncoder(
            [in_channels, *[self.hidden * heads for heads in self.heads[:-1]], out_channels],
            make_layer,
            seeds,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            normalisation=self.normalisation,
            skip=self.skip,
            activation=self.activation,
        )


class GATLayer(Layer):
    """Attention with several heads over neighbours and self."""

    adds_skip = True

    def __init__(
        self,
        in_channels: int,
        channels: int,
        heads: int,
        average: bool,
        dropout: float,
        seeds: Sequence[int],
        number: int,
    ) -> None:
        super().__init__()
        self.channels, self.heads, self.average, self.dropout = channels, heads, average, dropout
        name = f"layers.{number}"
        self.weight = _initial.glorot(seeds, f"{name}.weight", (in_channels, heads * channels))
        self.source = _initial.glorot(seeds, f"{name}.source", (heads, channels))
        self.target = _initial.glorot(seeds, f"{name}.target", (heads, channels))
        self.bias = _initial.constant(seeds, (channels if average else heads * channels,), 0.0)

    def forward(
        self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int, skip: ReplicaLinear | None = None
    ) -> Tensor:
        """One layer, and the skip connection: [nodes, replicas, heads x channels], or channels if heads are averaged.

        Both biases ride on the attention, and the skip connection's product is added where its result lies: both
        spare passes over [nodes, replicas, heads x channels].
        """
        h = signal.linear(self.weight).unflatten(-1, (self.heads, self.channels))
        bias = self.bias if skip is None or skip.bias is None else self.bias + skip.bias
        each = None if self.average else bias.unflatten(-1, (self.heads, self.channels))
        pattern, layer = arc_pattern(batch, True), ATTENTION_LAYER + number
        out = attend_heads(h, self.source, self.target, pattern, 0.2, noise, self.dropout, layer, each)
        out = out.mean(2) + bias if self.average else out.flatten(2)
        return out if skip is None else signal.linear_onto(out, skip.weight)
