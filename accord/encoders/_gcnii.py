"""GCNII: deep graph convolutions with initial residual and identity mapping (Chen et al. 2020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from accord.encoders._encoder import Encoder, EncoderSpec
from accord.encoders._spec import ACTIVATIONS
from accord.encoders.replica import (
    Features,
    Noise,
    Operator,
    ReplicaLayerNorm,
    ReplicaLinear,
    gcn_operator,
    glorot_weights,
    replica_linear,
)
from accord.graphs import GraphBatch


@dataclass(frozen=True)
class GCNII(EncoderSpec):
    """Linear map, `layers` convolutions of the same width, linear map; alpha and theta are the paper's.

    Args:
        hidden: channels of all convolutions.
        layers: number of convolutions.
        alpha: weight of the first representation in every layer.
        theta: sets how far a layer's weight is from the identity: log(theta / layer + 1).
        dropout: before every convolution and before the last linear map.
        input_dropout: on the features.
        normalisation: None, or "layer" after every convolution.
        skip: add each convolution's input to its output.
        normalise_skip: normalise the sum of both rather than the convolution's output, as the authors of SPN do.
        shared_weights: one weight for both the neighbours and the first representation; False gives each its own.
        activation: after every convolution.
        head: end in the linear map; False returns the `hidden` channels of the last convolution.
    """

    kind = "gcnii"
    hidden: int = 64
    layers: int = 9
    alpha: float = 0.5
    theta: float = 1.0
    dropout: float = 0.0
    input_dropout: float = 0.0
    normalisation: str | None = None
    skip: bool = False
    shared_weights: bool = True
    activation: str = "relu"
    normalise_skip: bool = False
    head: bool = True

    def build(self, in_channels: int, out_channels: int, seeds: Sequence[int]) -> "GCNIIEncoder":
        """Build an encoder with one replica per seed."""
        return GCNIIEncoder(self, in_channels, out_channels, seeds)


class GCNIIEncoder(Encoder):
    """A built GCNII."""

    on_parts = True

    def __init__(self, spec: GCNII, in_channels: int, out_channels: int, seeds: Sequence[int]) -> None:
        super().__init__(in_channels, out_channels if spec.head else spec.hidden, len(seeds))
        self.spec = spec
        self.first = ReplicaLinear(in_channels, spec.hidden, seeds, "first")
        self.layers = nn.ModuleList(
            GCNIILayer(spec, number, seeds, f"layers.{number}") for number in range(1, spec.layers + 1)
        )
        self.norms = nn.ModuleList(
            ReplicaLayerNorm(spec.hidden, seeds) for _ in range(spec.layers) if spec.normalisation == "layer"
        )
        self.last = ReplicaLinear(spec.hidden, out_channels, seeds, "last") if spec.head else None

    def encode(self, batch: GraphBatch, noise: Noise | None) -> Tensor:
        """Run the layers."""
        spec, activation = self.spec, ACTIVATIONS[self.spec.activation]
        operator = gcn_operator(batch, self.first.weight.dtype)
        features = Features(batch, noise, spec.input_dropout)
        initial = h = activation(features.linear(self.first.weight, self.first.bias))
        for number, layer in enumerate(self.layers):
            dropped = h if noise is None else noise.dropout(h, spec.dropout, number + 1)
            new = layer(dropped, initial, operator)
            new = new + h if spec.skip and spec.normalise_skip else new
            new = self.norms[number](new) if self.norms else new
            h = activation(new + h if spec.skip and not spec.normalise_skip else new)
        if self.last is None:
            return h
        h = h if noise is None else noise.dropout(h, spec.dropout, spec.layers + 1)
        encoded: Tensor = self.last(h)
        return encoded


class GCNIILayer(nn.Module):
    """z = (1 - alpha) A h + alpha h_0, then z ((1 - beta) I + beta W) with beta = log(theta / number + 1)."""

    def __init__(self, spec: GCNII, number: int, seeds: Sequence[int], name: str) -> None:
        super().__init__()
        self.alpha = spec.alpha
        self.beta = math.log(spec.theta / number + 1.0)
        shape = (spec.hidden, spec.hidden)
        self.weight = glorot_weights(seeds, f"{name}.weight", shape)
        self.initial_weight = None if spec.shared_weights else glorot_weights(seeds, f"{name}.initial_weight", shape)

    def forward(self, h: Tensor, initial: Tensor, operator: Operator) -> Tensor:
        """One convolution of [nodes, replicas, channels]."""
        if self.initial_weight is None:
            neighbours = operator(h)
            mixed = torch.lerp(neighbours, initial.to(neighbours.dtype), self.alpha)
            return replica_linear(mixed, self._near_identity(self.weight))
        neighbours = replica_linear(operator(h), (1.0 - self.alpha) * self._near_identity(self.weight))
        return neighbours + replica_linear(initial, self.alpha * self._near_identity(self.initial_weight))

    def _near_identity(self, weight: Tensor) -> Tensor:
        """Mix the weight with the identity, which saves a pass over all nodes."""
        identity = torch.eye(weight.shape[-1], dtype=weight.dtype, device=weight.device)
        return torch.lerp(identity, weight, self.beta)
