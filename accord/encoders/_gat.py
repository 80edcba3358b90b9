"""Graph attention network (Velickovic et al. 2018)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._stack import Layer, StackSpec
from accord.encoders.replica import (
    Noise,
    ReplicaLinear,
    Signal,
    arc_pattern,
    attend_heads,
    constant_weights,
    glorot_weights,
)
from accord.graphs import GraphBatch

FIRST_ATTENTION_LAYER = 500  # layer numbers of attention dropout start here, above those of other dropout in encoders
LEAKY_SLOPE = 0.2  # of the leaky ReLU on the scores, as in the GAT paper


@dataclass(frozen=True)
class GAT(StackSpec):
    """Stack of attention layers; heads are concatenated, in the last layer averaged; the defaults are the paper's.

    Args:
        hidden: channels of each head between the layers.
        heads: number of heads of each layer, which also sets the number of layers.
        dropout: between the layers.
        input_dropout: on the features.
        attention_dropout: on the attention weights.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output, as the authors' code does.
        activation: between the layers.
        last_dropout: before the last layer, where it replaces a smaller `dropout`.
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
    last_dropout: float = 0.0

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.heads)

    def widths(self, in_channels: int, out_channels: int) -> list[int]:
        """`hidden` channels for each head between the layers."""
        return [in_channels, *[self.hidden * heads for heads in self.heads[:-1]], out_channels]

    def make_layer(self, number: int, inputs: int, outputs: int, seeds: Sequence[int]) -> "GATLayer":
        """Build an attention layer; the last one averages its heads."""
        last = number == len(self.heads) - 1
        channels = outputs if last else self.hidden
        return GATLayer(inputs, channels, self.heads[number], last, self.attention_dropout, seeds, number)


class GATLayer(Layer):
    """Attention with several heads over neighbours and self."""

    adds_skip = True
    on_parts = True

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
        self.weight = glorot_weights(seeds, f"{name}.weight", (in_channels, heads * channels))
        self.source = glorot_weights(seeds, f"{name}.source", (heads, channels))
        self.target = glorot_weights(seeds, f"{name}.target", (heads, channels))
        self.bias = constant_weights(seeds, (channels if average else heads * channels,), 0.0)

    def forward(
        self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int, skip: ReplicaLinear | None = None
    ) -> Tensor:
        """One layer and its skip connection: [nodes, replicas, heads x channels], or channels if heads are averaged.

        Attention adds both biases, and the product of the skip connection is added in place: both save passes over
        [nodes, replicas, heads x channels].
        """
        h = signal.linear(self.weight).unflatten(-1, (self.heads, self.channels))
        bias = self.bias if skip is None or skip.bias is None else self.bias + skip.bias
        head_bias = None if self.average else bias.unflatten(-1, (self.heads, self.channels))
        pattern, layer = arc_pattern(batch, True), FIRST_ATTENTION_LAYER + number
        out = attend_heads(h, self.source, self.target, pattern, LEAKY_SLOPE, noise, self.dropout, layer, head_bias)
        out = batch.fill_ghosts(out.mean(2) + bias if self.average else out.flatten(2))
        return out if skip is None else signal.linear_onto(out, skip.weight)
