"""Layers for all replicas at once: linear maps, sparse operators and attention with a leading replica axis, and noise.

Representations have the layout [nodes, replicas, channels].
"""

from accord.encoders.replica._attention import attend_heads
from accord.encoders.replica._initial import constant_weights, derive_seed, fan_in_weights, glorot_weights
from accord.encoders.replica._inputs import Features, Hidden, Signal, agree_on_sparsity
from accord.encoders.replica._linear import ReplicaLayerNorm, ReplicaLinear, replica_linear, replica_linear_onto
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import (
    Operator,
    edge_ends,
    gcn_operator,
    mean_operator,
    silence_beta_warning,
)
from accord.encoders.replica._pattern import Pattern, arc_pattern

__all__ = [
    "Features",
    "Hidden",
    "Noise",
    "Operator",
    "Pattern",
    "ReplicaLayerNorm",
    "ReplicaLinear",
    "Signal",
    "agree_on_sparsity",
    "arc_pattern",
    "attend_heads",
    "constant_weights",
    "derive_seed",
    "edge_ends",
    "fan_in_weights",
    "gcn_operator",
    "glorot_weights",
    "mean_operator",
    "replica_linear",
    "replica_linear_onto",
    "silence_beta_warning",
]
