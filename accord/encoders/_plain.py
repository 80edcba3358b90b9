"""Encoders that do not look at edges: what the graph adds is measured against them."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._stack import Layer, StackSpec
from accord.encoders.replica._inputs import Features, Signal
from accord.encoders.replica._linear import ReplicaLinear
from accord.encoders.replica._noise import Noise
from accord.graphs import GraphBatch


class LinearLayer(Layer):
    """A linear map as a layer of a stack."""

    def __init__(self, in_channels: int, out_channels: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.map = ReplicaLinear(in_channels, out_channels, seeds, name)

    def forward(self, signal: Signal, batch: GraphBatch, noise: Noise | None, number: int) -> Tensor:
        """The batch is not looked at."""
        return signal.linear(self.map.weight, self.map.bias)


@dataclass(frozen=True)
class MLP(StackSpec):
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
        """One replica per seed."""
        return LinearEncoder(self, in_channels, out_channels, seeds)


class LinearEncoder(Encoder):
    """A built linear encoder."""

    def __init__(self, spec: Linear, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__(in_channels, out_channels, len(seeds))
        self.map = ReplicaLinear(in_channels, out_channels, seeds, "map")
        self.input_dropout = spec.input_dropout

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Map the features."""
        return Features(batch, noise, self.input_dropout).linear(self.map.weight, self.map.bias)


@dataclass(frozen=True)
class Identity(EncoderSpec):
    """The features as they are, for a scorer that is to see both ends' features themselves.

    Args:
        input_dropout: on the features.
    """

    kind = "identity"
    input_dropout: float = 0.0

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "IdentityEncoder":
        """One replica per seed; as many channels come out as go in, whatever `out_channels` says."""
        return IdentityEncoder(self, in_channels, in_channels, len(seeds))


class IdentityEncoder(Encoder):
    """Passes features on."""

    def __init__(self, spec: Identity, in_channels: int, out_channels: int, num_replicas: int) -> None:
        super().__init__(in_channels, out_channels, num_replicas)
        self.input_dropout = spec.input_dropout

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """A view of the features for each replica."""
        each = batch.x[:, None, :].expand(-1, self.num_replicas, -1)
        return each if noise is None else noise.dropout(each, self.input_dropout, 0)
