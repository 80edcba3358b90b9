"""Losses of the proxy problem: cross-entropy on nodes, on edges, and an optional penalty on their disagreement.

Every loss is one number per replica. Missing labels (-1) never count: a node counts if it is labelled, an edge if both
its ends are. Where several processes share a batch, a loss is the process's sum over the count of all (`totals`).
"""

import torch
from torch import Tensor

from accord.graphs import Topology
from accord.learning.training import ALONE, Totals


def node_loss(
    logits: Tensor,
    targets: Tensor,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
    totals: Totals = ALONE,
) -> Tensor:
    """Mean cross-entropy over labelled nodes [R] (first sum of Eq. 10).

    Args:
        logits: [R, nodes, states].
        targets: [R or 1, nodes].
        smoothing: share of the target spread evenly over all states.
        weights: [R, states], of each label; their mean over the training labels is 1. None for equal weights.
        totals: counts of the whole batch, where processes share it.
    """
    return _cross_entropy(logits, targets.expand(logits.shape[:-1]), smoothing, weights, totals)


def edge_loss(
    logits: Tensor,
    targets: Tensor,
    topology: Topology,
    smoothing: float = 0.0,
    weights: Tensor | None = None,
    totals: Totals = ALONE,
) -> Tensor:
    """Mean cross-entropy over edges with both ends labelled [R] (second sum of Eq. 10).

    Args:
        logits: [R, edges, states, states].
        targets: [R or 1, nodes].
        topology: the graphs.
        smoothing: share of the target spread evenly over all pairs.
        weights: [R, states, states], of each pair of labels; None for equal weights.
        totals: counts of the whole batch, where processes share it.
    """
    source, target = targets[:, topology.edge_index[0]], targets[:, topology.edge_index[1]]
    pair = (source * logits.shape[-1] + target).masked_fill((source < 0) | (target < 0), -1)
    pair_weights = None if weights is None else weights.flatten(-2)
    return _cross_entropy(logits.flatten(-2), pair.expand(logits.shape[:2]), smoothing, pair_weights, totals)


def consistency_penalty(node_logits: Tensor, edge_logits: Tensor, topology: Topology, totals: Totals = ALONE) -> Tensor:
    """Mean squared difference between an edge table's marginals and the node marginals at its ends [R].

    The paper's appendix, "Solving the Proxy Problem with Constrained Optimization".
    """
    node = node_logits.softmax(-1)
    edge = edge_logits.flatten(-2).softmax(-1).view_as(edge_logits)
    source, target = topology.edge_index
    gap = (edge.sum(-1) - node[:, source]).square().sum(-1) + (edge.sum(-2) - node[:, target]).square().sum(-1)
    return gap.sum(-1) / max(totals.number(topology.num_edges), 1)


def at_least_single(values: Tensor) -> Tensor:
    """Values in single precision at least: losses are not computed, nor fields solved, in half precision."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values


def _cross_entropy(logits: Tensor, targets: Tensor, smoothing: float, weights: Tensor | None, totals: Totals) -> Tensor:
    log_probabilities = at_least_single(logits).log_softmax(-1)
    known = targets >= 0
    picked = log_probabilities.gather(-1, targets.clamp_min(0)[..., None])[..., 0]
    if smoothing:
        picked = (1 - smoothing) * picked + smoothing * log_probabilities.mean(-1)
    if weights is not None:
        picked = picked * weights.gather(-1, targets.clamp_min(0))
    # Divided by the count, not by the sum of weights: a batch without rare labels must not count more for that.
    return -(picked * known).sum(-1) / totals.of(known.sum(-1)).clamp_min(1)
