"""Attention over arcs on the GPU: online softmax forward, recomputed weights backward, no tensor of arcs x channels.

Backward, with G the gradient of the result: an arc s -> t of weight w has d = G[t] . h[s], and the gradient of its
score is w (d - sum of w d over the arcs that enter t), times the slope of the leaky ReLU. Both d and the gradient of
h[s] need the rows G[t] only, so one pass over the arcs that leave s gathers them once.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from accord._triton import power_of_two, triton
from accord.encoders.replica._pattern import Pattern
from accord.encoders.replica.triton import _attention_kernels as kernels

MAX_CHANNELS = 1024  # a program holds all channels of a head
FORWARD_ARCS = 2  # rows that a program gathers at a time; fastest on an H200, as are the warps below
BACKWARD_ARCS = {torch.float32: 1}  # the same in the backward pass; other precisions as forward
WARP_WIDTH = 256  # elements of a row per warp: fewer threads wait less for each other
SCORE_ARCS, SCORE_GROUPS, SCORE_WARPS = 32, 32, 4  # block sizes of kernels on scores of arcs, not on rows
VECTOR_CHUNK_NODES = 64  # nodes over which a program sums the gradients of the attention vectors


@dataclass(frozen=True)
class Blocks:
    """Arcs, groups and channels that a program handles at a time, and its number of warps."""

    arcs: int
    groups: int
    channels: int
    warps: int

    @classmethod
    def of(cls, groups: int, channels: int, dtype: torch.dtype, back: bool = False) -> "Blocks":
        """Blocks of whole heads; several narrow heads share a block."""
        wide = power_of_two(channels)
        together = min(max(WARP_WIDTH // wide, 1), power_of_two(groups), 64)
        warps = max(wide * together // WARP_WIDTH, 1)
        if dtype != torch.float32 and together > 1:  # rows have half the bytes: two warps hide the latency
            warps = max(warps, 2)
        return cls(BACKWARD_ARCS.get(dtype, FORWARD_ARCS) if back else FORWARD_ARCS, together, wide, warps)


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
    """Attention with scores, softmax and average in one kernel.

    Args:
        h: [nodes, replicas, heads, channels].
        source: [replicas, heads, channels]; its inner product with a source is the source's part of an arc's score.
        target: the same for targets.
        pattern: arcs, self-loops included.
        slope: of the leaky ReLU on the score, for negative scores.
        keep: [arcs, replicas, heads] of zeros and ones: the weights that dropout keeps; None for no dropout.
        scale: factor on the kept weights.
        bias: [replicas, heads, channels], added to the average; None for no bias.

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
    """Inner products of `h` [nodes, groups, channels] with two vectors [groups, channels]: two of [nodes, groups]."""
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
    """Averages [nodes, groups, channels], and the log of each softmax's denominator [nodes, groups]."""
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
    """Gradients of `h` and of the two attention vectors."""
    nodes, groups, channels = h.shape
    block, arcs = Blocks.of(groups, channels, h.dtype, back=True), pattern.num_arcs
    by_group = triton.cdiv(groups, block.groups)
    to_h, to_arcs = torch.empty_like(h), h.new_empty(groups, arcs, dtype=torch.float32)
    kernels.gradient_at_sources[(nodes * by_group,)](
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
    kernels.gradient_of_scores[grid](
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
    chunks = triton.cdiv(nodes, VECTOR_CHUNK_NODES)
    to_source, to_target_vector = (h.new_empty(chunks, groups, channels, dtype=torch.float32) for _ in range(2))
    kernels.gradient_of_vectors[(chunks * by_group,)](
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
        VECTOR_CHUNK_NODES,
        block.arcs,
        block.groups,
        block.channels,
        num_warps=block.warps,
    )
    return to_h, to_source.sum(0), to_target_vector.sum(0)
