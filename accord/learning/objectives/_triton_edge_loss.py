"""The fused edge loss on the GPU: a program takes one node and a few replicas, and loops over the node's edges.

Where the node is an edge's source, the program adds the edge's loss and its gradient at the node's table; where it is
the target, the gradient only. Every sum is computed by one program in a fixed order, so all runs give the same bits.
An edge's softmax is computed twice, which is cheaper than storing it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from accord._triton import jit, power_of_two, tl, triton

MAX_PAIRS = 1024  # pairs of states; a program holds a whole table
TILE = 1024  # numbers of gathered tables that a program holds at once


@dataclass(frozen=True, eq=False)
class Incidence:
    """The other ends of each node's edges: those it is the source of, and those it is the target of."""

    source_start: Tensor  # [nodes + 1]
    targets: Tensor  # [edges], sorted by source
    target_start: Tensor  # [nodes + 1]
    sources: Tensor  # [edges], sorted by target


def triton_sums(
    at_source: Tensor, at_target: Tensor, shared: Tensor, targets: Tensor, incidence: Incidence, smoothing: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `plain_sums`: losses and counts [R], gradients [nodes, R, pairs] in float32."""
    nodes, replicas, pairs = at_source.shape
    labels = targets.t().to(torch.int32, memory_format=torch.contiguous_format)  # [nodes, R or 1]
    to_source, to_target = (torch.empty(nodes, replicas, pairs, device=labels.device) for _ in range(2))
    total, count = (torch.empty(nodes, replicas, device=labels.device) for _ in range(2))
    wide = power_of_two(pairs)
    together = min(power_of_two(replicas), max(TILE // 16 // wide, 1))
    edges = max(min(TILE // (wide * together), 16), 1)
    sum_edges[(nodes * triton.cdiv(replicas, together),)](
        incidence.source_start,
        incidence.targets,
        incidence.target_start,
        incidence.sources,
        at_source.contiguous(),
        at_target.contiguous(),
        shared.contiguous(),
        labels,
        total,
        count,
        to_source,
        to_target,
        nodes,
        replicas,
        int(labels.shape[1] > 1),
        math.isqrt(pairs),
        pairs,
        smoothing,
        edges,
        together,
        wide,
    )
    return total.sum(0), count.sum(0), to_source, to_target


@jit
def _cross_entropy(scores, label, known, pair, pairs, smoothing):  # type: ignore[no-untyped-def]
    """Loss and gradient of scores [edges, replicas, pairs]; zero where the label is not known."""
    real = (pair < pairs)[None, None, :]
    scores = tl.where(real, scores, float("-inf"))
    shifted = scores - tl.max(scores, 2)[:, :, None]
    powers = tl.exp(shifted)
    total = tl.sum(powers, 2)
    wanted = tl.where(label[:, :, None] == pair[None, None, :], 1.0 - smoothing, 0.0) + smoothing / pairs
    wanted = tl.where(real, wanted, 0.0)
    picked = tl.sum(tl.where(real, shifted, 0.0) * wanted, 2)
    loss = tl.where(known, tl.log(total) - picked, 0.0)
    return loss, tl.where(known[:, :, None], powers / total[:, :, None] - wanted, 0.0)


@jit
def sum_edges(  # type: ignore[no-untyped-def]
    source_start,
    targets,
    target_start,
    sources,
    at_source,
    at_target,
    shared,
    labels,
    losses,
    counts,
    to_source,
    to_target,
    nodes,
    replicas,
    apart,
    states,
    pairs,
    smoothing,
    EDGES: tl.constexpr,
    REPLICAS: tl.constexpr,
    PAIRS: tl.constexpr,
):
    """Sum over one node's edges; `apart` is 1 if every replica has its own labels, 0 if all share them."""
    node = (tl.program_id(0) % nodes).to(tl.int64)
    replica = tl.program_id(0) // nodes * REPLICAS + tl.arange(0, REPLICAS)
    pair = tl.arange(0, PAIRS)
    present = replica < replicas
    table = replica[:, None] * pairs + pair[None, :]
    there = present[:, None] & (pair < pairs)[None, :]
    own = node * replicas * pairs + table
    columns = 1 + (replicas - 1) * apart
    own_label = tl.load(labels + node * columns + replica * apart, present, other=-1)
    both = tl.load(shared + table, there, other=0.0).to(tl.float32)

    as_source = both + tl.load(at_source + own, there, other=0.0).to(tl.float32)
    gradients = tl.zeros([EDGES, REPLICAS, PAIRS], tl.float32)
    loss = tl.zeros([EDGES, REPLICAS], tl.float32)
    count = tl.zeros([EDGES, REPLICAS], tl.float32)
    last = tl.load(source_start + node + 1)
    for first in range(tl.load(source_start + node), last, EDGES):
        edge = first + tl.arange(0, EDGES)
        mask = (edge < last)[:, None] & present[None, :]
        other = tl.load(targets + edge, edge < last, other=0)
        label = tl.load(labels + other[:, None] * columns + replica[None, :] * apart, mask, other=-1)
        known = (own_label >= 0)[None, :] & (label >= 0)
        at = (other * replicas * pairs)[:, None, None] + table[None, :, :]
        rows = tl.load(at_target + at, (edge < last)[:, None, None] & there[None, :, :], other=0.0).to(tl.float32)
        label = own_label[None, :] * states + label
        lost, gradient = _cross_entropy(as_source[None, :, :] + rows, label, known, pair, pairs, smoothing)
        loss += lost
        count += known.to(tl.float32)
        gradients += gradient
    tl.store(losses + node * replicas + replica, tl.sum(loss, 0), present)
    tl.store(counts + node * replicas + replica, tl.sum(count, 0), present)
    tl.store(to_source + own, tl.sum(gradients, 0), there)

    as_target = both + tl.load(at_target + own, there, other=0.0).to(tl.float32)
    gradients = tl.zeros([EDGES, REPLICAS, PAIRS], tl.float32)
    last = tl.load(target_start + node + 1)
    for first in range(tl.load(target_start + node), last, EDGES):
        edge = first + tl.arange(0, EDGES)
        mask = (edge < last)[:, None] & present[None, :]
        other = tl.load(sources + edge, edge < last, other=0)
        label = tl.load(labels + other[:, None] * columns + replica[None, :] * apart, mask, other=-1)
        known = (own_label >= 0)[None, :] & (label >= 0)
        at = (other * replicas * pairs)[:, None, None] + table[None, :, :]
        rows = tl.load(at_source + at, (edge < last)[:, None, None] & there[None, :, :], other=0.0).to(tl.float32)
        label = label * states + own_label[None, :]
        lost, gradient = _cross_entropy(as_target[None, :, :] + rows, label, known, pair, pairs, smoothing)
        gradients += gradient
    tl.store(to_target + own, tl.sum(gradients, 0), there)
