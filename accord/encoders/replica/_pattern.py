"""The arcs of a batch in compressed form: where the entries of its adjacency matrices are."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.graphs import GraphBatch


@dataclass(frozen=True, eq=False)
class Pattern:
    """Positions of the entries of an adjacency matrix: one for each arc, sorted by target, then source.

    The pattern is symmetric, so the transpose of a matrix with this pattern is a permutation of its values.
    """

    start: Tensor  # [nodes + 1], int32: the arcs that enter node n are start[n] to start[n + 1]
    source: Tensor  # [arcs], int32
    target: Tensor  # [arcs]
    reverse: Tensor  # [arcs]: the arc in the other direction; a self-loop is its own reverse

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.start) - 1

    @property
    def num_arcs(self) -> int:
        """Number of arcs, with self-loops if the pattern has them."""
        return len(self.source)


def arc_pattern(batch: GraphBatch, self_loops: bool) -> Pattern:
    """The pattern of a batch, with or without a self-loop at every node; built once for each batch."""
    return batch.cached(("pattern", self_loops), lambda: _build(batch, self_loops))


def _build(batch: GraphBatch, self_loops: bool) -> Pattern:
    arcs, nodes = batch.topology.arcs, batch.num_nodes
    source, target = arcs.source, arcs.target
    if self_loops:
        loops = torch.arange(nodes, device=source.device)
        source, target = torch.cat([source, loops]), torch.cat([target, loops])
    order = (target * nodes + source).argsort()
    # Sorting by (source, target) lists the arcs in the order of their reverses.
    reverse = torch.empty_like(order)
    reverse[(source * nodes + target)[order].argsort()] = torch.arange(len(order), device=order.device)
    start = torch.zeros(nodes + 1, dtype=torch.int32, device=source.device)
    start[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
    return Pattern(start, source[order].to(torch.int32), target[order], reverse)
