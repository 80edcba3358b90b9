"""Attention over arcs: weights [arcs, replicas, heads], then sparse products; never a tensor of arcs x channels.

`attend` is the plain version: two autograd functions, `attention_weights` and `gather`. On a GPU `attend_heads` uses a
fused kernel, which is tested against the plain version.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from accord._triton import suits
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import adjacency, multiply, sum_incoming
from accord.encoders.replica._pattern import Pattern
from accord.encoders.replica.triton import MAX_CHANNELS, fused_attention

GRADIENT_BLOCK_ELEMENTS = 2**20  # tensor elements in memory at a time for the gradient of the attention weights


def attend_heads(
    h: Tensor,
    source: Tensor,
    target: Tensor,
    pattern: Pattern,
    slope: float = 0.2,
    noise: Noise | None = None,
    dropout: float = 0.0,
    layer: int = 0,
    bias: Tensor | None = None,
) -> Tensor:
    """Attention whose scores are inner products of `h` with one vector for sources and one for targets.

    Args:
        h: [nodes, replicas, heads, channels].
        source: [replicas, heads, channels].
        target: [replicas, heads, channels].
        pattern: arcs, self-loops included.
        slope: of the leaky ReLU on the score, for negative scores.
        noise: randomness of a training step; None for no dropout.
        dropout: on the attention weights.
        layer: number of this dropout in the model.
        bias: [replicas, heads, channels], added to the average in the precision of `h`; None for no bias.

    Returns:
        [nodes, replicas, heads, channels].
    """
    if not (suits(h, source, target) and h.shape[-1] <= MAX_CHANNELS and h.numel()):
        from_source, to_target = torch.linalg.vecdot(h, source), torch.linalg.vecdot(h, target)
        average = attend(h, from_source, to_target, pattern, slope, noise, dropout, layer)
        return average if bias is None else average + bias.to(average.dtype)
    keep, scale = None, 1.0
    if noise is not None and dropout:
        keep, scale = noise.keep(pattern.num_arcs, h.shape[2], dropout, layer, "arc")
    return fused_attention(h, source, target, pattern, slope, keep, scale, bias)


def attend(
    h: Tensor,
    from_source: Tensor,
    to_target: Tensor,
    pattern: Pattern,
    slope: float = 0.2,
    noise: Noise | None = None,
    dropout: float = 0.0,
    layer: int = 0,
) -> Tensor:
    """Average over each node's incoming arcs, weighted by a softmax (Velickovic et al. 2018, Eq. 3 and 4).

    Args:
        h: [nodes, replicas, heads, channels], the values to average.
        from_source: [nodes, replicas, heads], the source's part of an arc's score.
        to_target: [nodes, replicas, heads], the target's part.
        pattern: arcs, self-loops included.
        slope: of the leaky ReLU on the score, for negative scores.
        noise: randomness of a training step; None for no dropout.
        dropout: on the attention weights.
        layer: number of this dropout in the model.

    Returns:
        [nodes, replicas, heads, channels].
    """
    weights = attention_weights(from_source, to_target, pattern, slope)
    weights = weights if noise is None else noise.dropout(weights, dropout, layer, "arc")
    return gather(weights, h, pattern)


def attention_weights(from_source: Tensor, to_target: Tensor, pattern: Pattern, slope: float) -> Tensor:
    """Softmax over the arcs that enter a node: [arcs, replicas, heads]."""
    weights: Tensor = _Weights.apply(from_source, to_target, pattern, slope)  # type: ignore[no-untyped-call]
    return weights


def gather(weights: Tensor, h: Tensor, pattern: Pattern) -> Tensor:
    """Weighted sum of the sources' `h` over the arcs that enter a node: [nodes, replicas, heads, channels]."""
    gathered: Tensor = _Gather.apply(weights, h, pattern)  # type: ignore[no-untyped-call]
    return gathered


class _Weights(Function):
    @staticmethod
    def forward(ctx: Any, from_source: Tensor, to_target: Tensor, pattern: Pattern, slope: float) -> Tensor:
        source, target = pattern.source, pattern.target
        scores = from_source.index_select(0, source) + to_target.index_select(0, target)
        negative = scores < 0
        scores = functional.leaky_relu(scores, slope, inplace=True)
        # Subtract the largest score among the arcs that enter the node, so that exp cannot overflow.
        flat = scores.view(len(scores), -1)
        highest = torch.segment_reduce(flat, "max", offsets=pattern.start.long(), axis=0, unsafe=True)
        weights = flat.sub_(highest.index_select(0, target)).exp_()
        weights /= sum_incoming(pattern, weights).index_select(0, target)
        weights = weights.view_as(scores)
        ctx.pattern, ctx.slope = pattern, slope
        ctx.save_for_backward(weights, negative)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        pattern: Pattern = ctx.pattern
        weights, negative = ctx.saved_tensors
        weighted = weights * gradient
        weighted -= weights * sum_incoming(pattern, weighted).index_select(0, pattern.target)
        to_scores = torch.where(negative, weighted * ctx.slope, weighted)
        # The arcs that leave a node are the reverses of the arcs that enter it.
        leaving = sum_incoming(pattern, to_scores.index_select(0, pattern.reverse))
        return leaving, sum_incoming(pattern, to_scores), None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, h: Tensor, pattern: Pattern) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(weights, h)
        return _products(weights, h, pattern)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        pattern: Pattern = ctx.pattern
        weights, h = ctx.saved_tensors
        to_weights = to_h = None
        if ctx.needs_input_grad[0]:
            to_weights = torch.empty_like(weights)
            block = max(GRADIENT_BLOCK_ELEMENTS // max(h[:1].numel(), 1), 1)
            for arcs in torch.arange(pattern.num_arcs, device=h.device).split(block):
                ends = gradient.index_select(0, pattern.target[arcs]), h.index_select(0, pattern.source[arcs])
                to_weights[arcs] = torch.linalg.vecdot(*ends)
        if ctx.needs_input_grad[1]:
            to_h = _products(weights.index_select(0, pattern.reverse), gradient, pattern)
        return to_weights, to_h, None


def _products(weights: Tensor, h: Tensor, pattern: Pattern) -> Tensor:
    """One sparse product for each replica and head."""
    values = weights.flatten(1).t().contiguous()
    columns = h.flatten(1, 2)
    out = torch.empty_like(columns, memory_format=torch.contiguous_format)
    for head, value in enumerate(values):
        out[:, head] = multiply(adjacency(pattern, value), columns[:, head])
    return out.view(h.shape)
