"""Encoders that ignore edges: the baselines that show what the graph adds."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._stack import Layer, UniformStackSpec
from accord.encoders.replica import Features, Noise, ReplicaLinear, Signal
from accord.graphs import GraphBatch


class LinearLayer(Layer):
    """A linear map as a layer of a stack."""

    on_parts = True

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.map = ReplicaLinear(in_channels, out_channels, seeds, name)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """Map each node by itself; the edges of the batch are ignored."""
        return signal.linear(self.map.weight, self.map.bias)


@dataclass(frozen=True)
class MLP(UniformStackSpec):
    """Multilayer perceptron on each node's own features."""

    kind = "mlp"
    layer = LinearLayer


@dataclass(frozen=True)
class Linear(EncoderSpec):
    """One linear map of each node's own features: log-linear potentials.

    Args:
        input_dropout: on the features.
    """

    kind = "linear"
    input_dropout: float = 0.0

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "LinearEncoder":
        """Build an encoder with one replica per seed."""
        return LinearEncoder(self, in_channels, out_channels, seeds)


class LinearEncoder(Encoder):
    """A built linear encoder."""

    on_parts = True

    def __init__(self, spec: Linear, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__(in_channels, out_channels, len(seeds))
        self.map = ReplicaLinear(in_channels, out_channels, seeds, "map")
        self.input_dropout = spec.input_dropout

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Map the features."""
        return Features(batch, noise, self.input_dropout).linear(self.map.weight, self.map.bias)


@dataclass(frozen=True)
class Identity(EncoderSpec):
    """The features unchanged, for a scorer that works on the features of both ends.

    Args:
        input_dropout: on the features.
    """

    kind = "identity"
    input_dropout: float = 0.0

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "IdentityEncoder":
        """Build an encoder with one replica per seed; it has `in_channels` outputs and ignores `out_channels`."""
        return IdentityEncoder(self, in_channels, len(seeds))


class IdentityEncoder(Encoder):
    """A built identity encoder."""

    on_parts = True

    def __init__(self, spec: Identity, in_channels: int, num_replicas: int) -> None:
        super().__init__(in_channels, in_channels, num_replicas)
        self.input_dropout = spec.input_dropout

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """A view of the features for each replica, with dropout in training."""
        each = batch.x[:, None, :].expand(-1, self.num_replicas, -1)
        return each if noise is None else noise.dropout(each, self.input_dropout, 0)
