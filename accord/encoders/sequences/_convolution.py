"""Convolutions over neighbouring positions, all replicas at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from accord.encoders._spec import ACTIVATIONS
from accord.encoders.replica import Noise, ReplicaLinear
from accord.encoders.sequences._encoder import SequenceBody, SequenceSpec
from accord.errors import OptionError
from accord.graphs.sequences import SequenceLayout


@dataclass(frozen=True)
class Convolution(SequenceSpec):
    """Layers of convolutions with an activation; from the second on each adds its input.

    Args:
        reach: positions on either side that a layer reads.
        activation: after each layer.
    """

    kind = "convolution"
    hidden: int = 200
    layers: int = 2
    reach: int = 1
    activation: str = "relu"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.reach, bool) or not isinstance(self.reach, int) or self.reach < 0:
            raise OptionError(f"Convolution: reach={self.reach!r}; a whole number from 0 up is needed.")

    def body(self, in_channels: int, seeds: Sequence[int]) -> "ConvolutionBody":
        """The layers."""
        return ConvolutionBody(self, in_channels, seeds)


class ConvolutionBody(SequenceBody):
    """A linear map of the windows around each position, layer by layer."""

    def __init__(self, spec: Convolution, in_channels: int, seeds: Sequence[int]) -> None:
        super().__init__()
        widths = [in_channels, *[spec.hidden] * (spec.layers - 1)]
        size = 2 * spec.reach + 1
        self.layers = nn.ModuleList(
            ReplicaLinear(size * width, spec.hidden, seeds, f"layers.{number}") for number, width in enumerate(widths)
        )
        self.out_channels, self.dropout, self.reach = spec.hidden, spec.dropout, spec.reach
        self.activation = ACTIVATIONS[spec.activation]

    def forward(self, h: Tensor, layout: SequenceLayout, noise: Noise | None) -> Tensor:
        """Run the layers."""
        offsets = range(-self.reach, self.reach + 1)
        for number, layer in enumerate(self.layers, 1):
            window = torch.cat([layout.shifted(h, offset) for offset in offsets], -1)
            new = self.activation(layer(window))
            new = new if noise is None else noise.dropout(new, self.dropout, number)
            h = new if number == 1 else h + new
        return h
