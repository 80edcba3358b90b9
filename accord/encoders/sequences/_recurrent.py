"""Bidirectional LSTM and GRU. The weights of all replicas are stacked; torch's kernels run one replica at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence

from accord.encoders.replica import Noise, fan_in_weights
from accord.encoders.sequences._encoder import SequenceBody, SequenceSpec
from accord.graphs.sequences import SequenceLayout

Recursion = type[nn.LSTM] | type[nn.GRU]


class RecurrentLayer(nn.Module):
    """One bidirectional layer: parameters as torch's, with a leading replica axis.

    Args:
        kind: `nn.LSTM` or `nn.GRU`.
        in_channels: of the input.
        hidden: of each direction.
        seeds: one for each replica.
        name: of the layer, for its initial weights.
    """

    def __init__(self, kind: Recursion, in_channels: int, hidden: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        with torch.device("meta"):  # gives names and sizes of the parameters, and the recursion
            self.recursion = [kind(in_channels, hidden, bidirectional=True)]  # in a list, so that it is no child
        shapes = {key: value.shape for key, value in self.recursion[0].named_parameters()}
        self.weights = nn.ParameterDict(
            {key: fan_in_weights(seeds, f"{name}.{key}", shape, hidden) for key, shape in shapes.items()}
        )

    def forward(self, h: Tensor, layout: SequenceLayout) -> Tensor:
        """[nodes, replicas, in_channels] -> [nodes, replicas, 2 x hidden]."""
        order, inverse, sizes = layout.packed
        outputs = []
        for replica in range(h.shape[1]):
            own = {key: weight[replica] for key, weight in self.weights.items()}
            packed = PackedSequence(h[:, replica].index_select(0, order), sizes)
            outputs.append(functional_call(self.recursion[0], own, (packed,))[0].data.index_select(0, inverse))
        return torch.stack(outputs, 1)


class RecurrentBody(SequenceBody):
    """Layers one after the other, with dropout after each."""

    def __init__(self, spec: "RecurrentSpec", in_channels: int, seeds: Sequence[int]) -> None:
        super().__init__()
        widths = [in_channels, *[2 * spec.hidden] * (spec.layers - 1)]
        self.layers = nn.ModuleList(
            RecurrentLayer(spec.recursion, width, spec.hidden, seeds, f"layers.{number}")
            for number, width in enumerate(widths)
        )
        self.out_channels, self.dropout = 2 * spec.hidden, spec.dropout

    def forward(self, h: Tensor, layout: SequenceLayout, noise: Noise | None) -> Tensor:
        """Run the layers."""
        if not layout.num_nodes:
            return h.new_zeros(0, h.shape[1], self.out_channels)
        for number, layer in enumerate(self.layers, 1):
            h = layer(h, layout)
            h = h if noise is None else noise.dropout(h, self.dropout, number)
        return h


@dataclass(frozen=True)
class RecurrentSpec(SequenceSpec):
    """Layers of a bidirectional recurrent network; `hidden` counts the channels of each direction."""

    recursion: ClassVar[Recursion]

    def body(self, in_channels: int, seeds: Sequence[int]) -> RecurrentBody:
        """The layers."""
        return RecurrentBody(self, in_channels, seeds)


@dataclass(frozen=True)
class BiLSTM(RecurrentSpec):
    """Bidirectional long short-term memory (Hochreiter and Schmidhuber 1997; Graves and Schmidhuber 2005)."""

    kind = "bilstm"
    recursion = nn.LSTM


@dataclass(frozen=True)
class BiGRU(RecurrentSpec):
    """Bidirectional gated recurrent units (Cho et al. 2014)."""

    kind = "bigru"
    recursion = nn.GRU
