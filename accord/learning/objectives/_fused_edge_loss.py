"""Edge loss of scorers whose scores are sums over the two ends: the scores of single edges are never stored.

An edge's scores are the sum of a table of its source node, one of its target node and one of all edges; the gradient
of the cross-entropy, softmax - label, goes back to the same tables. One pass over the edges computes value and gradient
and stores sums at nodes only: [nodes, replicas, pairs of states] instead of [edges, replicas, pairs of states].
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from accord._triton import suits
from accord.encoders import Noise
from accord.graphs import GraphBatch
from accord.learning.objectives._losses import edge_loss
from accord.learning.objectives._parts import EdgePart
from accord.learning.objectives._triton_edge_loss import MAX_PAIRS, Incidence, triton_sums
from accord.learning.training import ALONE, Totals

BLOCK_NUMBERS = 2**20  # numbers computed at once; they fit into a CPU's cache
MANY_PAIRS = 2**10  # of states


def network_edge_loss(
    part: EdgePart,
    batch: GraphBatch,
    targets: Tensor,
    noise: Noise | None,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
    totals: Totals = ALONE,
) -> Tensor:
    """`edge_loss` of an edge network [R], fused where its scorer allows it.

    Args:
        part: the edge network.
        batch: the graphs.
        targets: [R or 1, nodes].
        noise: randomness of a training step.
        smoothing: share of the target spread evenly over all pairs.
        weights: [R, states, states], of each pair of labels; None for equal weights.
        totals: counts of the whole batch, where processes share it.
    """
    hidden = part.encoder(batch, noise)
    tables = part.scorer.node_tables(hidden, noise)
    if tables is None:
        return edge_loss(part.scorer(hidden, batch, noise), targets, batch.topology, smoothing, weights, totals)
    return split_edge_loss(*tables, targets, batch, smoothing, weights, totals)


def split_edge_loss(
    at_source: Tensor,
    at_target: Tensor,
    shared: Tensor,
    targets: Tensor,
    batch: GraphBatch,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
    totals: Totals = ALONE,
) -> Tensor:
    """`edge_loss` of the scores at_source[s] + at_target[t] + shared.

    Args:
        at_source: [nodes, R, states, states].
        at_target: [nodes, R, states, states].
        shared: [R, states, states].
        targets: [R or 1, nodes].
        batch: the graphs.
        smoothing: share of the target spread evenly over all pairs.
        weights: [R, states, states], of each pair of labels; None for equal weights.
        totals: counts of the whole batch, where processes share it.
    """
    pair_weights = None if weights is None else weights.flatten(-2)
    loss: Tensor = _SplitEdgeLoss.apply(  # type: ignore[no-untyped-call]
        *(tables.flatten(-2) for tables in (at_source, at_target, shared)),
        targets,
        batch,
        smoothing,
        pair_weights,
        totals,
    )
    return loss


def incidence(batch: GraphBatch) -> Incidence:
    """The ends of a batch's edges, sorted by source and by target."""

    def build() -> Incidence:
        source, target = batch.topology.edge_index
        by_source, by_target = source.argsort(stable=True), target.argsort(stable=True)
        return Incidence(
            _starts(source, batch.num_nodes), target[by_source], _starts(target, batch.num_nodes), source[by_target]
        )

    return batch.cached("incidence", build)


def plain_sums(
    at_source: Tensor,
    at_target: Tensor,
    shared: Tensor,
    targets: Tensor,
    edge_index: Tensor,
    smoothing: float,
    weights: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sum of the edges' losses [R], how many count [R], and gradients at the ends' tables [nodes, R, pairs].

    Few pairs come first: a softmax over a leading axis processes whole rows of nodes and replicas at a time. Many come
    last: gathering a node then copies whole rows of pairs. Weights [R, pairs] multiply losses and gradients, not the
    counts.
    """
    pairs = shared.shape[-1]
    axis, node_axis, order = (0, 1, (2, 0, 1)) if pairs < MANY_PAIRS else (2, 0, (0, 1, 2))
    first, second = (tables.permute(order).contiguous() for tables in (at_source, at_target))
    both, labels = shared[None].permute(order), targets.t().contiguous()
    to_first, to_second = torch.zeros_like(first), torch.zeros_like(second)
    replicas = len(shared)
    total, count = first.new_zeros(replicas), first.new_zeros(replicas)
    for source, target in edge_index.split(max(BLOCK_NUMBERS // max(pairs * replicas, 1), 1), dim=1):
        source_label, target_label = labels[source], labels[target]
        known = ((source_label >= 0) & (target_label >= 0)).expand(-1, replicas)
        label = (source_label * math.isqrt(pairs) + target_label).clamp_min(0).expand(-1, replicas).unsqueeze(axis)
        scores = first.index_select(node_axis, source).add_(second.index_select(node_axis, target)).add_(both)
        log_probabilities = scores.log_softmax(axis)
        picked = (1 - smoothing) * log_probabilities.gather(axis, label).squeeze(axis)
        picked = picked + smoothing * log_probabilities.mean(axis) if smoothing else picked
        count += known.sum(0)
        factor = known if weights is None else known * weights.t().to(picked).gather(0, label.squeeze(axis))
        total -= (picked * factor).sum(0)
        gradient = log_probabilities.exp_()
        gradient.scatter_add_(axis, label, gradient.new_full(label.shape, smoothing - 1.0))
        gradient = gradient.sub_(smoothing / pairs).mul_(factor.unsqueeze(axis))
        to_first.index_add_(node_axis, source, gradient)
        to_second.index_add_(node_axis, target, gradient)
    back = (1, 2, 0) if axis == 0 else order
    return total, count, to_first.permute(back), to_second.permute(back)


def _starts(node: Tensor, count: int) -> Tensor:
    start = torch.zeros(count + 1, dtype=torch.int64, device=node.device)
    start[1:] = torch.bincount(node, minlength=count).cumsum(0)
    return start


class _SplitEdgeLoss(Function):
    @staticmethod
    def forward(
        ctx: Any,
        at_source: Tensor,
        at_target: Tensor,
        shared: Tensor,
        targets: Tensor,
        batch: GraphBatch,
        smoothing: float,
        weights: Tensor | None,
        totals: Totals,
    ) -> Tensor:
        tables = at_source, at_target, shared
        # Triton's kernel knows no weights; the blocks below work on a GPU too.
        if weights is None and suits(*tables) and at_source.shape[-1] <= MAX_PAIRS and at_source.numel():
            sums = triton_sums(*tables, targets, incidence(batch), smoothing)
        else:
            wide = torch.float64 if at_source.dtype == torch.float64 else torch.float32
            full = [table.to(wide) for table in tables]
            sums = plain_sums(full[0], full[1], full[2], targets, batch.topology.edge_index, smoothing, weights)
        total, count, to_source, to_target = sums
        scale = totals.of(count).clamp_min(1).reciprocal()
        ctx.save_for_backward(to_source, to_target, scale)
        ctx.dtypes = [table.dtype for table in tables]
        return total * scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        to_source, to_target, scale = ctx.saved_tensors
        factor = (gradient * scale)[:, None]
        # Every edge has one source, so the gradients at the sources count each edge once.
        found = to_source * factor, to_target * factor, to_source.sum(0) * factor
        return *(tensor.to(dtype) for tensor, dtype in zip(found, ctx.dtypes, strict=True)), *[None] * 5
