"""Layers in a row, with dropout, normalisation, skip connections and activation between them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

from torch import Tensor, nn

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._spec import ACTIVATIONS
from accord.encoders.replica._inputs import Features, Hidden, Signal
from accord.encoders.replica._linear import ReplicaLayerNorm, ReplicaLinear
from accord.encoders.replica._noise import Noise
from accord.graphs import GraphBatch


class Layer(nn.Module, ABC):
    """One step of message passing, without what comes between the steps."""

    adds_skip: ClassVar[bool] = False  # whether it adds the skip connection itself, given as a last argument

    @abstractmethod
    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """[nodes, replicas, outputs]; `number` tells layers apart in the noise."""


MakeLayer = Callable[[int, int, int], Layer]  # number, inputs, outputs


class StackedEncoder(Encoder):
    """dropout -> layer (+ linear skip connection) -> normalisation -> activation, the last layer bare.

    Args:
        widths: channels before, between and after the layers.
        make_layer: builds layer `number` with so many inputs and outputs.
        seeds: one for each replica.
        dropout: before every layer but the first.
        input_dropout: before the first layer.
        normalisation: None, or "layer".
        skip: add a linear map of each layer's input to its output.
        activation: name in `ACTIVATIONS`.
    """

    def __init__(
        self,
        widths: Sequence[int],
        make_layer: MakeLayer,
        seeds: Sequence[int],
        *,
        dropout: float,
        input_dropout: float,
        normalisation: str | None,
        skip: bool,
        activation: str,
    ) -> None:
        super().__init__(widths[0], widths[-1], len(seeds))
        steps = list(enumerate(zip(widths[:-1], widths[1:], strict=True)))
        self.layers = nn.ModuleList(make_layer(number, inputs, outputs) for number, (inputs, outputs) in steps)
        self.skips = nn.ModuleList(
            ReplicaLinear(inputs, outputs, seeds, f"skips.{number}") for number, (inputs, outputs) in steps if skip
        )
        self.norms = nn.ModuleList(
            ReplicaLayerNorm(outputs, seeds) for _, (_, outputs) in steps[:-1] if normalisation == "layer"
        )
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.activation = ACTIVATIONS[activation]

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Run the layers."""
        h = self._step(0, Features(batch, noise, self.input_dropout), batch, noise)
        for number in range(1, len(self.layers)):
            h = self.norms[number - 1](h) if self.norms else h
            h = self.activation(h)
            h = h if noise is None else noise.dropout(h, self.dropout, number)
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
class StackSpec(EncoderSpec):
    """A stack of like layers; subclasses name the layer.

    Args:
        hidden: channels between the layers.
        layers: how many.
        dropout: between the layers.
        input_dropout: on the features.
        normalisation: None, or "layer" between the layers.
        skip: add a linear map of each layer's input to its output.
        activation: between the layers.
    """

    layer: ClassVar[type[Layer]]  # called with inputs, outputs, seeds and a name
    hidden: int = 64
    layers: int = 2
    dropout: float = 0.0
    input_dropout: float = 0.0
    normalisation: str | None = None
    skip: bool = False
    activation: str = "relu"

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> StackedEncoder:
        """One replica per seed."""
        make = type(self).layer
        return StackedEncoder(
            [in_channels, *[self.hidden] * (self.layers - 1), out_channels],
            lambda number, inputs, outputs: make(inputs, outputs, seeds, f"layers.{number}"),
            seeds,
            dropout=self.dropout,
            input_dropout=self.input_dropout,
            normalisation=self.normalisation,
            skip=self.skip,
            activation=self.activation,
        )
