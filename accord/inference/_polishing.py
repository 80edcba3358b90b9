"""Single-node moves that raise the joint score of a labelling, on the part of a graph that has loops.

What the labels around say is added up once for every state of every node, and kept up to date as nodes move. So only
those are touched that want to move, few if beliefs were good, and their neighbours. Of neighbours that both want, the
one that comes first in a fixed order moves: moves that are made together never meet.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference._blocks import blocks
from accord.inference._extended import Extended

MAX_ROUNDS = 10_000  # and one for each node, as a wave along a ring takes; each raises the score, and few need fifty
SPREAD = 0x9E3779B97F4A7C15 - 2**64  # odd, so that different numbers stay so: 2^64 / golden ratio
GAIN = 1e-13  # of a score: what a move must win, or rounding could send a node back and forth


def polish(field: PairwiseField, evidence: Tensor, edge: Tensor, barred: bool, labels: Tensor) -> Tensor:
    """Labels [R, nodes] after moves of the core's nodes, given what their own evidence [R, nodes, states] says.

    A forbidden pair counts before any score, so that a move which repairs one is always taken; `barred` says whether
    there may be any.
    """
    core = field.peeling.core.nonzero().flatten()
    pairs, turn = _core_pairs(field, edge, barred), _turns(field.graph)[core]
    arcs: _Arcs | None = None
    current, rounds = labels[:, core].flatten(), MAX_ROUNDS + core.numel()  # of places: a node in a replica is one
    while rounds > 0:
        # Afresh as long as anything moves: next to a large penalty, taken out again, all else is lost to rounding.
        local = pairs.scores(evidence[:, core], current.view(len(labels), -1))
        wanted = _best_state(local, current)
        waiting = (wanted != current).nonzero().flatten()
        if not waiting.numel():
            break
        arcs = arcs or _Arcs.between(pairs.edge_index, core.numel())
        while waiting.numel() and rounds > 0:
            moving = waiting[~arcs.blocked(waiting, wanted, current, turn)]
            heard = pairs.replace(local, arcs, moving, current, wanted)
            current[moving] = wanted[moving]
            wanted[heard] = _best_state(local.rows(heard), current[heard])
            waiting = torch.cat([waiting, heard]).unique()
            waiting = waiting[wanted[waiting] != current[waiting]]
            rounds -= 1
    labels[:, core] = current.view(len(labels), -1)
    return labels


def _turns(graph: Tensor) -> Tensor:
    """An order without pattern of the nodes of each graph: the same whatever other graphs there are."""
    by_graph = graph.argsort(stable=True)
    sizes = torch.bincount(graph)
    within = torch.empty_like(graph)
    within[by_graph] = torch.arange(len(graph), device=graph.device) - (sizes.cumsum(0) - sizes)[graph[by_graph]]
    return within * SPREAD


def _best_state(local: Extended, current: Tensor) -> Tensor:
    """The state with the fewest forbidden terms, then the highest score; the current one unless clearly beaten."""
    fewest = local.infinities.amin(-1, keepdim=True)
    score = local.finite.masked_fill(local.infinities > fewest, -torch.inf)
    best = score.amax(-1)
    stays = score.gather(-1, current[..., None])[..., 0] >= best - GAIN * best.abs()
    return torch.where(stays, current, score.argmax(-1))


@dataclass(frozen=True)
class _Arcs:
    """The arcs that leave each node. Arc e is edge e as stored, arc edges + e the way back."""

    listener: Tensor  # [arcs]: where an arc leads
    by_speaker: Tensor  # [arcs]: their numbers, those of one node after those of another
    first: Tensor  # [nodes + 1]: where a node's begin in it

    @property
    def num_nodes(self) -> int:
        """Of the core; place p is node p % num_nodes of replica p // num_nodes."""
        return len(self.first) - 1

    @classmethod
    def between(cls, edge_index: Tensor, num_nodes: int) -> "_Arcs":
        """Those of a core."""
        speaker = edge_index.flatten()
        counts = torch.bincount(speaker, minlength=num_nodes)
        first = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return cls(edge_index.flip(0).flatten(), speaker.argsort(stable=True).to(speaker.dtype), first)

    def leaving(self, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All arcs that leave places: which of the places, number of the arc, the place where it leads."""
        node = places % self.num_nodes
        begin, counts = self.first[node], self.first[node + 1] - self.first[node]
        which = torch.arange(len(places), device=places.device).repeat_interleave(counts)
        within = torch.arange(len(which), device=places.device) - (counts.cumsum(0) - counts)[which]
        arc = self.by_speaker[begin[which] + within]
        return which, arc, (places - node)[which] + self.listener[arc]

    def blocked(self, places: Tensor, wanted: Tensor, current: Tensor, turn: Tensor) -> Tensor:
        """Which of the places have a neighbour that wants to move and has its turn sooner."""
        blocked = torch.zeros_like(places, dtype=torch.bool)
        for block in blocks(len(places), len(self.listener) // self.num_nodes + 1):
            which, _, other = self.leaving(places[block])
            mine = turn[places[block] % self.num_nodes][which]
            sooner = (wanted[other] != current[other]) & (turn[other % self.num_nodes] < mine)
            blocked[block][which[sooner]] = True
        return blocked


@dataclass(frozen=True)
class _Pairs:
    """Tables of the core's edges; rows of them are picked, and nothing else is copied."""

    edge: Tensor  # [R, edges, states, states]: of the whole field
    kept: Tensor  # [core edges]: which of them
    edge_index: Tensor  # [2, core edges]
    barred: bool  # some pair may be forbidden

    def scores(self, evidence: Tensor, labels: Tensor) -> Extended:
        """Of every state of every place, given the evidence and the labels [R, nodes] around: [places, states]."""
        # In double precision: terms are taken out again when nodes move.
        local = Extended.split(evidence.double())
        replica = torch.arange(len(labels), device=labels.device)[:, None]
        source, target = self.edge_index
        sides = ((source, target, self.edge), (target, source, self.edge.transpose(-1, -2)))
        for speaker, listener, tables in sides:
            for block in blocks(len(self.kept), len(labels) * tables.shape[-1]):
                rows = tables[replica, self.kept[block], labels[:, speaker[block]]]
                local.scatter_add_(listener[block].long(), rows.double(), self.barred)
        return Extended(local.finite.flatten(0, 1), local.infinities.flatten(0, 1))

    def replace(self, local: Extended, arcs: _Arcs, moving: Tensor, old: Tensor, new: Tensor) -> Tensor:
        """Take out of `local` [places, states] what places said, and add what they say now; who hears of it."""
        which, arc, listener = arcs.leaving(moving)
        for against, tables in enumerate((self.edge, self.edge.transpose(-1, -2))):
            side = (arc // len(self.kept) == against).nonzero().flatten()
            for block in blocks(len(side), tables.shape[-1]):
                some = side[block]
                speaker, edge = moving[which[some]], self.kept[arc[some] % len(self.kept)]
                replica = speaker // arcs.num_nodes
                said, says = (Extended.split(tables[replica, edge, states[speaker]].double()) for states in (old, new))
                change = says - said
                local.finite.index_add_(0, listener[some], change.finite)
                if self.barred:
                    local.infinities.index_add_(0, listener[some], change.infinities)
        heard: Tensor = listener.unique()
        return heard


def _core_pairs(field: PairwiseField, edge: Tensor, barred: bool) -> _Pairs:
    # In 32 bits where that will do: half the memory of what large graphs take here.
    whole = torch.int32 if max(field.num_edges, field.num_nodes) < 2**31 else torch.int64
    kept = field.peeling.core_edge.nonzero().flatten().to(whole)
    position = field.peeling.core.cumsum(0, dtype=whole) - 1  # among the nodes of the core
    edge_index = torch.empty(2, len(kept), dtype=whole, device=kept.device)
    for row, ends in zip(edge_index, field.edge_index, strict=True):
        row.copy_(position[ends[kept]])
    return _Pairs(edge, kept, edge_index, barred)
