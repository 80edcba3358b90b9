"""Dropout masks as a function of (seed, step, layer, element): the same on every device and for any set of replicas."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from accord.errors import OptionError
from accord.graphs import Rows, Share

# Multipliers of the "lowbias32" integer hash (C. Wellons, public domain), as signed 32-bit numbers.
MULTIPLIERS = (0x7FEB352D, 0x846CA68B - 2**32)
GOLDEN_RATIO = 0x9E3779B9 - 2**32  # 2^32 / golden ratio: spreads consecutive numbers over all 32 bits
DROPOUT_LEVELS = 2**16  # a 32-bit word decides two elements, so probabilities are exact to 1.5e-5


class Noise:
    """Randomness of one training step: a stream for each replica that depends on its own seed only.

    Args:
        seeds: [replicas], whole numbers; masks are made on their device.
        step: number of the training step; a tensor of one number may change between replays of a CUDA graph.
        share: where a process holds some graphs of a batch only: which. Masks are then those rows of the masks of the
            whole batch that belong to these graphs.
    """

    def __init__(self, seeds: Tensor | Sequence[int], step: int | Tensor, share: Share | None = None) -> None:
        self.seeds = torch.as_tensor(seeds, dtype=torch.int64)
        self.step, self.share = step, share
        low, high = self.seeds.to(torch.int32), (self.seeds >> 32).to(torch.int32)
        # Integers wrap around at 64 bits in torch and never in Python. Cut to 32 bits first, both give the same.
        spread = (
            ((step & 0xFFFFFFFF) * GOLDEN_RATIO).to(torch.int32)
            if isinstance(step, Tensor)
            else _int32(step * GOLDEN_RATIO)
        )
        stepped = mix(high + 1) ^ spread
        self._key = mix(mix(low + GOLDEN_RATIO) + mix(stepped))

    @property
    def num_replicas(self) -> int:
        """Number of replicas."""
        return len(self.seeds)

    def with_seeds(self, offset: int) -> "Noise":
        """Other masks of the same step: those of seeds that are larger by `offset`."""
        return Noise(self.seeds + offset, self.step, self.share)

    def dropout(self, h: Tensor, p: float, layer: int, of: Rows = "node") -> Tensor:
        """Set each element to zero with probability `p` and scale up the rest.

        Args:
            h: [rows, replicas, channels].
            p: probability to drop, 0 <= p < 1.
            layer: number of this dropout in the model; dropouts with the same number have the same mask.
            of: what the rows are, in the order of the batch.
        """
        if p == 0.0 or h.numel() == 0:
            return h
        keep, scale = self.keep(h.shape[0], h.shape[2], p, layer, of)
        dropped: Tensor = _Dropout.apply(h, keep, scale)  # type: ignore[no-untyped-call]
        return dropped

    def keep(self, rows: int, channels: int, p: float, layer: int, of: Rows = "node") -> tuple[Tensor, float]:
        """Mask [rows, replicas, channels] with ones for kept elements, and the factor that preserves the mean."""
        if rows == 0:  # torch gives empty tensors strides that cannot be viewed as other types
            mask = torch.empty(0, self.num_replicas, channels, dtype=torch.uint8, device=self._key.device)
            return mask, _threshold(p)[1]
        words = (channels + 1) // 2
        index = self._numbers(rows, words, of).view(rows, 1, words)
        first, second = self._keys(layer)
        halves = mix((index ^ first[None, :, None]).add_(second[None, :, None]), in_place=True).view(torch.int16)
        bound, scale = _threshold(p)
        # Bytes, not booleans: torch writes comparisons to bytes and multiplies by bytes several times faster.
        mask = torch.empty(rows, self.num_replicas, channels, dtype=torch.uint8, device=index.device)
        return torch.lt(halves[..., :channels], bound, out=mask), scale

    def keep_at(self, row: Tensor, channel: Tensor, channels: int, p: float, layer: int) -> tuple[Tensor, float]:
        """Elements (node, channel) of the mask that `keep` returns for `channels` channels: [elements, replicas]."""
        words = (channels + 1) // 2
        row = row if self.share is None else self.share.rows("node")[row]
        index = (row * words + channel // 2).to(torch.int32)[:, None]
        first, second = self._keys(layer)
        hashed = mix((index ^ first).add_(second), in_place=True)
        halves = hashed.view(torch.int16).view(*hashed.shape, 2)
        bound, scale = _threshold(p)
        half = torch.where((channel % 2 == 1)[:, None], halves[..., 1], halves[..., 0])
        return (half < bound).to(torch.uint8), scale

    def _numbers(self, rows: int, words: int, of: Rows) -> Tensor:
        """The numbers of the words of a mask, row by row [rows x words], as 32-bit numbers that wrap around."""
        if self.share is None:
            return torch.arange(rows * words, dtype=torch.int32, device=self._key.device)
        word = torch.arange(words, device=self._key.device)
        return (self.share.rows(of)[:, None] * words + word).to(torch.int32)

    def _keys(self, layer: int) -> tuple[Tensor, Tensor]:
        """Two keys for each replica."""
        first = mix(self._key + _int32((layer + 1) * GOLDEN_RATIO))
        return first, mix(first ^ MULTIPLIERS[0])


def mix(x: Tensor, in_place: bool = False) -> Tensor:
    """A bijection of 32-bit integers in which every input bit affects every output bit."""
    x = x if in_place else x.clone()
    for shift, multiplier in ((16, MULTIPLIERS[0]), (15, MULTIPLIERS[1])):
        x ^= (x >> shift).bitwise_and_((1 << (32 - shift)) - 1)  # torch shifts in sign bits: clear them
        x *= multiplier
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    return x


def _int32(value: int) -> int:
    """Wrap around to a signed 32-bit number."""
    return (value + 2**31) % 2**32 - 2**31


def _threshold(p: float) -> tuple[int, float]:
    """The bound below which signed 16-bit numbers are kept, and the factor that preserves the mean."""
    if not 0.0 <= p < 1.0:
        raise OptionError(f"Noise: dropout probability {p} must be at least 0 and less than 1.")
    kept = max(round((1.0 - p) * DROPOUT_LEVELS), 1)
    return kept - DROPOUT_LEVELS // 2, DROPOUT_LEVELS / kept


class _Dropout(Function):
    """Saves the mask as bytes: a quarter of the memory of a mask of floats."""

    @staticmethod
    def forward(ctx: Any, h: Tensor, keep: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(keep)
        ctx.scale = scale
        return (h * keep).mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (keep,) = ctx.saved_tensors
        return (gradient * keep).mul_(ctx.scale), None, None
