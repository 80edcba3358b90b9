"""Attention over arcs on the GPU: online softmax forward, weights made anew backward, nothing of arcs x channels.

Backward, with G the gradient of the result: arc s -> t of weight w has d = G[t] . h[s], and its score's gradient is
w (d - sum of w d over the arcs that enter t), times the leaky ReLU's slope. Both d and the gradient of h[s] need the
rows G[t] only, so going through the arcs that leave s gathers them once.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from accord._triton import power_of_two, triton
from accord.encoders.replica._operators import Pattern
from accord.encoders.replica.triton import _attention_kernels as kernels

MAX_CHANNELS = 1024  # a program holds all channels of a head
ARCS = 2  # rows that a program gathers at once; measured best on an H200, as are the warps below
ARCS_BACK = {torch.float32: 1}  # the same going back
WARP_WIDTH = 256  # numbers of a row to a warp: fewer threads wait less for each other
SCORE_ARCS, SCORE_GROUPS, SCORE_WARPS = 32, 32, 4  # of the kernels that handle scores of arcs, not rows
CHUNK = 64  # nodes over which a program adds up the gradients of the attention vectors


@dataclass(frozen=True)
class Blocks:
    """How many arcs, groups and channels a program takes at once, and with how many warps."""

    arcs: int
    groups: int
    channels: int
    warps: int

    @classmethod
    def of(cls, groups: int, channels: int, dtype: torch.dtype, back: bool = False) -> "Blocks":
        """Whole heads, narrow ones several at a time."""
        wide = power_of_two(channels)
        together = min(max(WARP_WIDTH // wide, 1), power_of_two(groups), 64)
        warps = max(wide * together // WARP_WIDTH, 1)
        if dtype != torch.float32 and together > 1:  # rows of half the bytes: two warps hide the wait for them
            warps = max(warps, 2)
        return cls(ARCS_BACK.get(dtype, ARCS) if back else ARCS, together, wide, warps)


def fused_attention(
    h: Tensor,
    source: Tensor,
    target: Tensor,
    pattern: Pattern,
    slope: float,
    keep: Tensor | None,
    scale: float,
    bias: Tensor | None = None,
) -> Tensor:
    """Scores, softmax and average in one.

    Args:
        h: [nodes, replicas, heads, channels].
        source: [replicas, heads, channels], whose product with a source is its part of an arc's score.
        target: the same for targets.
        pattern: arcs, self-loops included.
        slope: of the leaky ReLU on the score, below zero.
        keep: [arcs, replicas, heads] of zeros and ones, the weights that dropout leaves; None for all.
        scale: factor on what is left.
        bias: [replicas, heads, channels], added to the average; None for none.

    Returns:
        [nodes, replicas, heads, channels].
    """
    flat = None if bias is None else bias.flatten(0, 1)
    inputs = h.flatten(1, 2), source.flatten(0, 1), target.flatten(0, 1), flat
    out: Tensor = _Attention.apply(*inputs, pattern, slope, keep, scale)  # type: ignore[no-untyped-call]
    return out.view(h.shape)


class _Attention(Function):
    @staticmethod
    def forward(
        ctx: Any,
        h: Tensor,
        source: Tensor,
        target: Tensor,
        bias: Tensor | None,
        pattern: Pattern,
        slope: float,
        keep: Tensor | None,
        scale: float,
    ) -> Tensor:
        h, source, target = h.contiguous(), source.contiguous(), target.contiguous()
        from_source, to_target = head_scores(h, source, target)
        out, log_sum = attend_forward(h, from_source, to_target, pattern, slope, keep, scale, bias)
        ctx.save_for_backward(h, source, target, from_source, to_target, log_sum)
        ctx.rest = (pattern, slope, keep, scale)
        ctx.bias_dtype = None if bias is None else bias.dtype
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        h, source, target, *parts = ctx.saved_tensors
        to_h, to_source, to_target = attend_backward(gradient.contiguous(), h, source, target, *parts, *ctx.rest)
        to_bias = None if ctx.bias_dtype is None else gradient.sum(0, dtype=torch.float32).to(ctx.bias_dtype)
        return to_h, to_source.to(source.dtype), to_target.to(target.dtype), to_bias, None, None, None, None


def head_scores(h: Tensor, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Products of `h` [nodes, groups, channels] with two vectors a group [groups, channels]: [nodes, groups] each."""
    nodes, groups, channels = h.shape
    from_source, to_target = (h.new_empty(nodes, groups, dtype=torch.float32) for _ in range(2))
    block = Blocks.of(groups, channels, h.dtype)
    grid = (triton.cdiv(nodes, block.arcs) * triton.cdiv(groups, block.groups),)
    kernels.score_nodes[grid](
        h,
        source,
        target,
        from_source,
        to_target,
        nodes,
        groups,
        channels,
        block.arcs,
        block.groups,
        block.channels,
        num_warps=block.warps,
    )
    return from_source, to_target


def attend_forward(
    h: Tensor,
    from_source: Tensor,
    to_target: Tensor,
    pattern: Pattern,
    slope: float,
    keep: Tensor | None,
    scale: float,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Averages [nodes, groups, channels], and the logarithm of each softmax's denominator [nodes, groups]."""
    nodes, groups, channels = h.shape
    out, log_sum = torch.empty_like(h), torch.empty_like(from_source)
    block = Blocks.of(groups, channels, h.dtype)
    kernels.average_over_arcs[(nodes * triton.cdiv(groups, block.groups),)](
        pattern.start,
        pattern.source,
        h,
        from_source,
        to_target,
        from_source if keep is None else keep,
        from_source if bias is None else bias.contiguous(),
        out,
        log_sum,
        nodes,
        groups,
        channels,
        slope,
        scale,
        keep is not None,
        bias is not None,
        block.arcs,
        block.groups,
        block.channels,
        num_warps=block.warps,
    )
    return out, log_sum


def attend_backward(
    gradient: Tensor,
    h: Tensor,
    source: Tensor,
    target: Tensor,
    from_source: Tensor,
    to_target: Tensor,
    log_sum: Tensor,
    pattern: Pattern,
    slope: float,
    keep: Tensor | None,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of `h` and of the two vectors a group."""
    nodes, groups, channels = h.shape
    block, arcs = Blocks.of(groups, channels, h.dtype, back=True), pattern.num_arcs
    by_group = triton.cdiv(groups, block.groups)
    to_h, to_arcs = torch.empty_like(h), h.new_empty(groups, arcs, dtype=torch.float32)
    kernels.hand_to_sources[(nodes * by_group,)](
        pattern.start,
        pattern.source,
        pattern.reverse,
        h,
        gradient,
        from_source,
        to_target,
        log_sum,
        from_source if keep is None else keep,
        to_h,
        to_arcs,
        nodes,
        groups,
        channels,
        arcs,
        slope,
        scale,
        keep is not None,
        block.arcs,
        block.groups,
        block.channels,
        num_warps=block.warps,
    )
    to_from_source, to_to_target = torch.empty_like(from_source), torch.empty_like(to_target)
    narrow = min(power_of_two(groups), SCORE_GROUPS)
    grid = (nodes * triton.cdiv(groups, narrow),)
    kernels.hand_to_scores[grid](
        pattern.start,
        pattern.source,
        pattern.reverse,
        from_source,
        to_target,
        log_sum,
        to_arcs,
        to_to_target,
        nodes,
        groups,
        arcs,
        slope,
        SCORE_ARCS,
        narrow,
        num_warps=SCORE_WARPS,
    )
    kernels.sum_leaving[grid](
        pattern.start, to_arcs, to_from_source, nodes, groups, arcs, SCORE_ARCS, narrow, num_warps=SCORE_WARPS
    )
    chunks = triton.cdiv(nodes, CHUNK)
    to_source, to_target_vector = (h.new_empty(chunks, groups, channels, dtype=torch.float32) for _ in range(2))
    kernels.hand_to_vectors[(chunks * by_group,)](
        h,
        source,
        target,
        to_from_source,
        to_to_target,
        to_h,
        to_source,
        to_target_vector,
        nodes,
        groups,
        channels,
        chunks,
        CHUNK,
        block.arcs,
        block.groups,
        block.channels,
        num_warps=block.warps,
    )
    return to_h, to_source.sum(0), to_target_vector.sum(0)
