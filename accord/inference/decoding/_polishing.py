"""Local search: single nodes change state while that raises the joint score, on the part of a graph that has loops.

The score of every state of every node, given its neighbours' labels, is computed once and updated as nodes change. So
the work is limited to nodes that can improve, which are few if the beliefs are good, and to their neighbours. Of
neighbours that could both improve, the one that comes first in a fixed order changes, so changes made together never
interact.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference._blocks import blocks
from accord.inference._extended import Extended

# Plus one for each node, which a wave of changes around a ring takes. Each round raises the score; few graphs need 50.
MAX_ROUNDS = 10_000
SPREAD = 0x9E3779B97F4A7C15 - 2**64  # 2^64 / golden ratio; odd, so that different numbers stay different
GAIN = 1e-13  # least relative gain of a change; with less, rounding could make a node alternate


def polish(field: PairwiseField, evidence: Tensor, edge: Tensor, barred: bool, labels: Tensor) -> Tensor:
    """Improved labels [R, nodes]; only nodes of the core change, scored by their evidence [R, nodes, states].

    Fewer forbidden pairs come before a higher score, so a change that removes one is always made. `barred` tells
    whether there may be any.
    """
    core = field.peeling.core.nonzero().flatten()
    pairs, priority = _core_pairs(field, edge, barred), _priorities(field.graph)[core]
    arcs: _Arcs | None = None
    current, rounds = labels[:, core].flatten(), MAX_ROUNDS + core.numel()  # [places]: one for each replica and node
    while rounds > 0:
        # Recomputed until nothing changes: adding and removing a large penalty loses the smaller terms to rounding.
        local = pairs.scores(evidence[:, core], current.view(len(labels), -1))
        wanted = _best_state(local, current)
        waiting = (wanted != current).nonzero().flatten()
        if not waiting.numel():
            break
        arcs = arcs or _Arcs.between(pairs.edge_index, core.numel())
        while waiting.numel() and rounds > 0:
            moving = waiting[~arcs.blocked(waiting, wanted, current, priority)]
            affected = pairs.replace(local, arcs, moving, current, wanted)
            current[moving] = wanted[moving]
            wanted[affected] = _best_state(local.rows(affected), current[affected])
            waiting = torch.cat([waiting, affected]).unique()
            waiting = waiting[wanted[waiting] != current[waiting]]
            rounds -= 1
    labels[:, core] = current.view(len(labels), -1)
    return labels


def _priorities(graph: Tensor) -> Tensor:
    """A scrambled order of the nodes of each graph, which does not depend on the other graphs."""
    by_graph = graph.argsort(stable=True)
    sizes = torch.bincount(graph)
    within = torch.empty_like(graph)
    within[by_graph] = torch.arange(len(graph), device=graph.device) - (sizes.cumsum(0) - sizes)[graph[by_graph]]
    return within * SPREAD


def _best_state(local: Extended, current: Tensor) -> Tensor:
    """The state with the fewest forbidden terms, then the highest score; the current one if none is clearly better."""
    fewest = local.infinities.amin(-1, keepdim=True)
    score = local.finite.masked_fill(local.infinities > fewest, -torch.inf)
    best = score.amax(-1)
    stays = score.gather(-1, current[..., None])[..., 0] >= best - GAIN * best.abs()
    return torch.where(stays, current, score.argmax(-1))


@dataclass(frozen=True)
class _Arcs:
    """The arcs that leave each node. Arc e runs along edge e as stored, arc edges + e against it."""

    target: Tensor  # [arcs]: where an arc ends
    by_source: Tensor  # [arcs]: numbers of the arcs, sorted by the node that they leave
    first: Tensor  # [nodes + 1]: where the arcs of a node begin in `by_source`

    @property
    def num_nodes(self) -> int:
        """Nodes of the core; place p is node p % num_nodes of replica p // num_nodes."""
        return len(self.first) - 1

    @classmethod
    def between(cls, edge_index: Tensor, num_nodes: int) -> "_Arcs":
        """Both arcs of every edge of a core."""
        source = edge_index.flatten()
        counts = torch.bincount(source, minlength=num_nodes)
        first = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(edge_index.flip(0).flatten(), source.argsort(stable=True).to(source.dtype), first)

    def leaving(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All arcs that leave some places: index of the place, number of the arc, and the place where it ends."""
        node = places % self.num_nodes
        begin, counts = self.first[node], self.first[node + 1] - self.first[node]
        which = torch.arange(len(places), device=places.device).repeat_interleave(counts)
        within = torch.arange(len(which), device=places.device) - (counts.cumsum(0) - counts)[which]
        arc = self.by_source[begin[which] + within]
        return which, arc, (places - node)[which] + self.target[arc]

    def blocked(self, places: Tensor, wanted: Tensor, current: Tensor, priority: Tensor) -> Tensor:
        """Which of the places have a neighbour that is to change and comes first in the order."""
        blocked = torch.zeros_like(places, dtype=torch.bool)
        for block in blocks(len(places), len(self.target) // self.num_nodes + 1):
            which, _, other = self.leaving(places[block])
            own = priority[places[block] % self.num_nodes][which]
            first = (wanted[other] != current[other]) & (priority[other % self.num_nodes] < own)
            blocked[block][which[first]] = True
        return blocked


@dataclass(frozen=True)
class _Pairs:
    """Tables of the core's edges. Only the rows that are needed are copied."""

    edge: Tensor  # [R, edges, states, states]: of the whole field
    kept: Tensor  # [core edges]: which edges belong to the core
    edge_index: Tensor  # [2, core edges]
    barred: bool  # some pair may be forbidden

    def scores(self, evidence: Tensor, labels: Tensor) -> Extended:
        """Score of every state of every place [places, states], given its evidence and the labels [R, nodes]."""
        # In double precision: terms are subtracted again when nodes change.
        local = Extended.split(evidence.double())
        replica = torch.arange(len(labels), device=labels.device)[:, None]
        source, target = self.edge_index
        sides = ((source, target, self.edge), (target, source, self.edge.transpose(-1, -2)))
        for near, far, tables in sides:
            for block in blocks(len(self.kept), len(labels) * tables.shape[-1]):
                rows = tables[replica, self.kept[block], labels[:, near[block]]]
                local.scatter_add_(far[block].long(), rows.double(), self.barred)
        return Extended(local.finite.flatten(0, 1), local.infinities.flatten(0, 1))

    def replace(self, local: Extended, arcs: _Arcs, moving: Tensor, old: Tensor, new: Tensor) -> Tensor:
        """Update the scores `local` [places, states] for places that change from `old` to `new` states.

        Returns the places whose scores changed.
        """
        which, arc, target = arcs.leaving(moving)
        for against, tables in enumerate((self.edge, self.edge.transpose(-1, -2))):
            side = (arc // len(self.kept) == against).nonzero().flatten()
            for block in blocks(len(side), tables.shape[-1]):
                some = side[block]
                source, edge = moving[which[some]], self.kept[arc[some] % len(self.kept)]
                replica = source // arcs.num_nodes
                before, after = (
                    Extended.split(tables[replica, edge, states[source]].double()) for states in (old, new)
                )
                change = after - before
                local.finite.index_add_(0, target[some], change.finite)
                if self.barred:
                    local.infinities.index_add_(0, target[some], change.infinities)
        affected: Tensor = target.unique()
        return affected


def _core_pairs(field: PairwiseField, edge: Tensor, barred: bool) -> _Pairs:
    # Indices of 32 bits where they suffice: they take half the memory.
    whole = torch.int32 if max(field.num_edges, field.num_nodes) < 2**31 else torch.int64
    kept = field.peeling.core_edge.nonzero().flatten().to(whole)
    position = field.peeling.core.cumsum(0, dtype=whole) - 1  # among the nodes of the core
    edge_index = torch.empty(2, len(kept), dtype=whole, device=kept.device)
    for row, ends in zip(edge_index, field.edge_index, strict=True):
        row.copy_(position[ends[kept]])
    return _Pairs(edge, kept, edge_index, barred)
