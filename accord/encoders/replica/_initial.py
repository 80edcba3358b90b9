"""Initial weights: each replica's are drawn from its own seed and the name of the parameter."""

import hashlib
import math
from collections.abc import Sequence

import torch
from torch import nn


def uniform_weights(seeds: Sequence[int], name: str, shape: Sequence[int], bound: float) -> nn.Parameter:
    """Uniform in [-bound, bound], stacked to [replicas, *shape]."""
    values = torch.empty(len(seeds), *shape)
    for replica, seed in enumerate(seeds):
        generator = torch.Generator().manual_seed(derive_seed(seed, name))
        values[replica].uniform_(-bound, bound, generator=generator)
    return nn.Parameter(values)


def glorot_weights(seeds: Sequence[int], name: str, shape: Sequence[int]) -> nn.Parameter:
    """As PyG's convolutions: uniform within sqrt(6 / (sum of the last two sizes))."""
    return uniform_weights(seeds, name, shape, math.sqrt(6.0 / max(shape[-2] + shape[-1], 1)))


def fan_in_weights(seeds: Sequence[int], name: str, shape: Sequence[int], inputs: int) -> nn.Parameter:
    """As weight and bias of torch's `nn.Linear`: uniform within 1 / sqrt(inputs)."""
    return uniform_weights(seeds, name, shape, 1.0 / math.sqrt(max(inputs, 1)))


def constant_weights(seeds: Sequence[int], shape: Sequence[int], value: float) -> nn.Parameter:
    """The same value everywhere: [replicas, *shape]."""
    return nn.Parameter(torch.full((len(seeds), *shape), value))


def derive_seed(seed: int, *labels: object) -> int:
    """A seed for one purpose, named by `labels`: independent of other purposes, and the same in every process."""
    text = "/".join(map(str, (seed, *labels)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
