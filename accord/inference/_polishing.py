"""Single-node moves that raise the joint score of a labelling, on the part of a graph that has loops.

Nodes of one colour share no edge and move together. After the first pass only nodes are looked at again that have
seen a neighbour move: the others would stay.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.graphs import colour_nodes
from accord.inference._blocks import blocks
from accord.inference._extended import Extended, has_infinity

MAX_PASSES = 200  # each raises the score, and few graphs need ten


def polish(field: PairwiseField, evidence: Tensor, edge: Tensor, labels: Tensor) -> Tensor:
    """Labels [R, nodes] after moves of the core's nodes, given what their own evidence [R, nodes, states] says.

    A forbidden pair counts before any score, so that a move which repairs one is always taken.
    """
    core = field.peeling.core.nonzero().flatten()
    # In 32 bits where that will do: half the memory of what large graphs take here.
    whole = torch.int32 if max(field.num_edges, field.num_nodes) < 2**31 else torch.int64
    kept = field.peeling.core_edge.nonzero().flatten().to(whole)
    position = field.peeling.core.cumsum(0, dtype=whole) - 1  # among the nodes of the core
    edge_index = torch.empty(2, len(kept), dtype=whole, device=kept.device)
    for row, ends in zip(edge_index, field.edge_index, strict=True):
        row.copy_(position[ends[kept]])
    pairs = _Pairs(edge, kept, edge_index, has_infinity(edge))
    classes = [
        _ColourClass(nodes, *(pairs.edges_at(nodes, core.numel(), end) for end in (0, 1)))
        for nodes in colour_nodes(edge_index, core.numel())
    ]
    evidence, current = evidence[:, core], labels[:, core]
    waiting = torch.ones(core.numel(), dtype=torch.bool, device=core.device)
    slot = torch.empty(core.numel(), dtype=torch.long, device=core.device)
    for _ in range(MAX_PASSES):
        if not bool(waiting.any()):
            break
        for colour in classes:
            some = colour.restricted(waiting, edge_index)
            waiting[some.nodes] = False
            slot[some.nodes] = torch.arange(some.nodes.numel(), device=core.device)
            local = Extended.split(evidence[:, some.nodes])
            pairs.add_scores(local, current, slot, some)
            old = current[:, some.nodes]
            new = _best_move(local, old)
            current[:, some.nodes] = new
            moved = (new != old).any(0)
            for edges, near, far in some.sides(edge_index):
                waiting[far[edges[moved[slot[near[edges]]]]]] = True
    labels[:, core] = current
    return labels


@dataclass(frozen=True)
class _ColourClass:
    """Nodes that share no edge, the edges that leave them as stored, and those that enter them."""

    nodes: Tensor
    leaving: Tensor
    entering: Tensor

    def restricted(self, waiting: Tensor, edge_index: Tensor) -> "_ColourClass":
        """The part of it that waits to be looked at."""
        leaving, entering = (edges[waiting[near[edges]]] for edges, near, _ in self.sides(edge_index))
        return _ColourClass(self.nodes[waiting[self.nodes]], leaving, entering)

    def sides(self, edge_index: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], ...]:
        """Edges, where they have their end in this class, and where the other."""
        source, target = edge_index
        return (self.leaving, source, target), (self.entering, target, source)


@dataclass(frozen=True)
class _Pairs:
    """Tables of the core's edges; rows of them are picked, and nothing else is copied."""

    edge: Tensor  # [R, edges, states, states]: of the whole field
    kept: Tensor  # [core edges]: which of them
    edge_index: Tensor  # [2, core edges]
    barred: bool  # some pair may be forbidden

    def edges_at(self, nodes: Tensor, num_nodes: int, end: int) -> Tensor:
        """Edges whose source (end 0) or target (end 1) is one of the nodes."""
        inside = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device)
        inside[nodes] = True
        return inside[self.edge_index[end]].nonzero().flatten().to(self.kept.dtype)

    def add_scores(self, local: Extended, labels: Tensor, slot: Tensor, colour: _ColourClass) -> None:
        """Add to `local` [R, nodes, states], where `slot` says which row is whose, what the labels around say."""
        replica = torch.arange(len(labels), device=labels.device)[:, None]
        tables = self.edge.transpose(-1, -2), self.edge  # by the state of the other end
        for table, (edges, near, far) in zip(tables, colour.sides(self.edge_index), strict=True):
            for block in blocks(edges.numel(), len(labels) * table.shape[-1]):
                some = edges[block]
                rows = table[replica, self.kept[some], labels[:, far[some]]]
                local.scatter_add_(slot[near[some]], rows, self.barred)


def _best_move(local: Extended, current: Tensor) -> Tensor:
    """The state with the fewest forbidden terms, then the highest score; the current one unless strictly beaten."""
    fewest = local.infinities.amin(-1, keepdim=True)
    score = local.finite.masked_fill(local.infinities > fewest, -torch.inf)
    best = score.amax(-1)
    stays = score.gather(-1, current[..., None])[..., 0] >= best
    return torch.where(stays, current, score.argmax(-1))
