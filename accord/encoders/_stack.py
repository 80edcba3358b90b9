"""Stacks of layers, with dropout, normalisation, skip connections and activations between them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from torch import Tensor, nn

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._spec import ACTIVATIONS
from accord.encoders.replica import Features, Hidden, Noise, ReplicaLayerNorm, ReplicaLinear, Signal
from accord.graphs import GraphBatch


class Layer(nn.Module, ABC):
    """One step of message passing, without dropout, normalisation and activation."""

    adds_skip: ClassVar[bool] = False  # whether `forward` takes the skip connection as a last argument and adds it
    on_parts: ClassVar[bool] = False  # whether what it sums over neighbours goes through `GraphBatch.fill_ghosts`

    @abstractmethod
    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """Compute [nodes, replicas, outputs].

        Args:
            signal: the layer's input.
            batch: the graphs.
            noise: randomness of a training step; None for evaluation.
            number: the layer's position in the stack, which tells the layers apart in the noise.
        """


class StackSpec(EncoderSpec, ABC):
    """Specification of a stack of layers. Subclasses are dataclasses with the options below, in an order of their own.

    Args:
        dropout: between the layers.
        input_dropout: on the features.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output.
        activation: between the layers; a name in `ACTIVATIONS`.
        last_dropout: before the last layer, where it replaces a smaller `dropout`.
    """

    dropout: float
    input_dropout: float
    normalisation: str | None
    skip: bool
    activation: str
    last_dropout: float

    @abstractmethod
    def widths(self, in_channels: int, out_channels: int) -> list[int]:
        """Channels before, between and after the layers."""

    @abstractmethod
    def make_layer(self, number: int, inputs: int, outputs: int, seeds: Sequence[int]) -> Layer:
        """Build layer `number` with these channels."""

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "StackedEncoder":
        """Build an encoder with one replica per seed."""
        return StackedEncoder(self, in_channels, out_channels, seeds)


class StackedEncoder(Encoder):
    """dropout -> layer (+ linear skip connection) -> normalisation -> activation; only the layer at the end."""

    def __init__(self, spec: StackSpec, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__(in_channels, out_channels, len(seeds))
        widths = spec.widths(in_channels, out_channels)
        steps = list(enumerate(zip(widths[:-1], widths[1:], strict=True)))
        self.layers = nn.ModuleList(
            spec.make_layer(number, inputs, outputs, seeds) for number, (inputs, outputs) in steps
        )
        self.on_parts = all(cast(Layer, layer).on_parts for layer in self.layers)
        self.skips = nn.ModuleList(
            ReplicaLinear(inputs, outputs, seeds, f"skips.{number}") for number, (inputs, outputs) in steps if spec.skip
        )
        self.norms = nn.ModuleList(
            ReplicaLayerNorm(outputs, seeds) for _, (_, outputs) in steps[:-1] if spec.normalisation == "layer"
        )
        # before each layer but the first; the last may have more, since a scorer's table is easily overfitted
        self.dropout = [spec.dropout] * (len(steps) - 2) + [max(spec.dropout, spec.last_dropout)]
        self.input_dropout = spec.input_dropout
        self.activation = ACTIVATIONS[spec.activation]

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Run the layers."""
        h = self._step(0, Features(batch, noise, self.input_dropout), batch, noise)
        for number in range(1, len(self.layers)):
            h = self.norms[number - 1](h) if self.norms else h
            h = self.activation(h)
            h = h if noise is None else noise.dropout(h, self.dropout[number - 1], number)
            h = self._step(number, Hidden(h), batch, noise)
        return h

    def _step(self, number: int, signal: Signal, batch: GraphBatch, noise: Noise | None) -> Tensor:
        layer = cast(Layer, self.layers[number])
        if not self.skips:
            alone: Tensor = layer(signal, batch, noise, number)
            return alone
        skip = cast(ReplicaLinear, self.skips[number])
        if layer.adds_skip:
            both: Tensor = layer(signal, batch, noise, number, skip)
            return both
        h: Tensor = layer(signal, batch, noise, number)
        return h + signal.linear(skip.weight, skip.bias)


@dataclass(frozen=True)
class UniformStackSpec(StackSpec):
    """A stack of layers of one type and width. Subclasses set `kind` and `layer`.

    Args:
        hidden: channels between the layers.
        layers: number of layers.
        dropout: between the layers.
        input_dropout: on the features.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output.
        activation: between the layers.
        last_dropout: before the last layer, where it replaces a smaller `dropout`.
    """

    layer: ClassVar[type[Layer]]  # called with inputs, outputs, seeds and a name
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.0
    input_dropout: float = 0.0
    normalisation: str | None = None
    skip: bool = False
    activation: str = "relu"
    last_dropout: float = 0.0

    def widths(self, in_channels: int, out_channels: int) -> list[int]:
        """`hidden` channels between the layers."""
        return [in_channels, *[self.hidden] * (self.layers - 1), out_channels]

    def make_layer(self, number: int, inputs: int, outputs: int, seeds: Sequence[int]) -> Layer:
        """Build a layer of the class's type."""
        return type(self).layer(inputs, outputs, seeds, f"layers.{number}")
