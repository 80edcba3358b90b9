"""A small transformer encoder (Vaswani et al. 2017), all replicas at once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from accord.encoders.replica import Noise, ReplicaLayerNorm, ReplicaLinear
from accord.encoders.sequences._encoder import SequenceBody, SequenceSpec
from accord.errors import OptionError
from accord.graphs.sequences import SequenceLayout

WAVELENGTH = 10_000.0  # of the slowest wave of the positions, in units of 2 pi, as in the paper
FEED_FORWARD = 2  # times as wide as the layers


@dataclass(frozen=True)
class Transformer(SequenceSpec):
    """Layers of attention over the whole sequence, normalised before each part; positions are added as sines.

    Args:
        attention_heads: of each layer; they share the `hidden` channels.
    """

    kind = "transformer"
    hidden: int = 128
    layers: int = 2
    dropout: float = 0.2
    input_dropout: float = 0.1
    attention_heads: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        heads = self.attention_heads
        if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1 or self.hidden % heads:
            raise OptionError(
                f"Transformer: attention_heads={heads!r} and hidden={self.hidden}; the heads must divide the channels."
            )

    def body(self, in_channels: int, seeds: Sequence[int]) -> "TransformerBody":
        """The layers."""
        return TransformerBody(self, in_channels, seeds)


class TransformerBody(SequenceBody):
    """A linear map of the input, positions, attention layers and a last normalisation."""

    def __init__(self, spec: Transformer, in_channels: int, seeds: Sequence[int]) -> None:
        super().__init__()
        self.out_channels = spec.hidden
        self.first = ReplicaLinear(in_channels, spec.hidden, seeds, "first")
        self.layers = nn.ModuleList(AttentionLayer(spec, seeds, number) for number in range(spec.layers))
        self.last = ReplicaLayerNorm(spec.hidden, seeds)

    def forward(self, h: Tensor, layout: SequenceLayout, noise: Noise | None) -> Tensor:
        """Run the layers."""
        h = self.first(h)
        h = h + waves(layout.position, self.out_channels).to(h.dtype)[:, None]
        for layer in self.layers:
            h = layer(h, layout, noise)
        normalised: Tensor = self.last(h)
        return normalised


class AttentionLayer(nn.Module):
    """Attention and a feed-forward network, each added to its input."""

    def __init__(self, spec: Transformer, seeds: Sequence[int], number: int) -> None:
        super().__init__()
        width, name = spec.hidden, f"layers.{number}"
        self.norms = nn.ModuleList(ReplicaLayerNorm(width, seeds) for _ in range(2))
        self.queries = ReplicaLinear(width, 3 * width, seeds, f"{name}.queries")  # and keys and values
        self.mixed = ReplicaLinear(width, width, seeds, f"{name}.mixed")
        self.wide = ReplicaLinear(width, FEED_FORWARD * width, seeds, f"{name}.wide")
        self.narrow = ReplicaLinear(FEED_FORWARD * width, width, seeds, f"{name}.narrow")
        self.heads, self.dropout, self.number = spec.attention_heads, spec.dropout, number

    def forward(self, h: Tensor, layout: SequenceLayout, noise: Noise | None) -> Tensor:
        """[nodes, replicas, hidden] -> the same."""
        h = h + self._drop(self.mixed(self._attend(self.queries(self.norms[0](h)), layout)), noise, 1)
        inner = torch.relu(self.wide(self.norms[1](h)))
        return h + self._drop(self.narrow(self._drop(inner, noise, 2)), noise, 3)

    def _attend(self, h: Tensor, layout: SequenceLayout) -> Tensor:
        """Attention among the nodes of each sequence: [nodes, replicas, 3 x hidden] -> [nodes, replicas, hidden]."""
        nodes, replicas, width = h.shape
        count, longest = len(layout.lengths), layout.longest
        padded = h.new_zeros(count * longest, replicas, width).index_copy(0, layout.padded, h)
        parts = padded.view(count, longest, replicas, 3, self.heads, -1)
        queries, keys, values = parts.permute(3, 0, 2, 4, 1, 5)  # each [sequences, replicas, heads, length, channels]
        there = torch.arange(longest, device=h.device) < layout.lengths[:, None]
        mixed = functional.scaled_dot_product_attention(queries, keys, values, there[:, None, None, None])
        rows = mixed.permute(0, 3, 1, 2, 4).reshape(count * longest, replicas, width // 3)
        return rows.index_select(0, layout.padded)

    def _drop(self, h: Tensor, noise: Noise | None, place: int) -> Tensor:
        return h if noise is None else noise.dropout(h, self.dropout, 3 * self.number + place)


def waves(position: Tensor, channels: int) -> Tensor:
    """Sines and cosines of positions at falling frequencies [nodes, channels]."""
    steps = torch.arange(0, channels, 2, device=position.device, dtype=torch.float64)
    angle = position[:, None] * torch.exp(-math.log(WAVELENGTH) * steps / channels)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :channels]
