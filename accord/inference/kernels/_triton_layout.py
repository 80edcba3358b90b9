"""How a problem lies in the memory of a GPU: layouts and buffers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem
from accord.inference.kernels._reference import collect, normalise

BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


@dataclass(frozen=True)
class Form:
    """What a kernel is compiled for."""

    states: int
    ratios: bool  # two states and nothing barred: see `_triton_ratios`
    padded: int  # `numbers`, up to a power of two: those in a row of totals
    width: int  # edges at once
    warps: int  # of a program
    block: int  # edges whose numbers lie side by side in memory
    stride: int  # numbers from one row of an edge to the next
    tiled: bool  # threads share the rows of an edge; else all of them are in the registers of one
    rows: int  # of each table at once, where threads share them
    starts: tuple[int, ...]  # first states of the chunks that rows lie in
    sizes: tuple[int, ...]  # and how many states each has
    nodes: int  # at once, where their totals are set: a vector of them for each thread
    vector: int  # numbers in 16 bytes, or in a row of totals if that is less
    count_vector: int
    best: bool  # max-product
    linear: bool  # sums of exp(potential); else of logs, which are safe for any table
    barred: bool  # there may be -inf
    weighted: bool  # edge appearance is not 1 everywhere
    damped: bool
    many: bool  # more than one graph
    runs: bool  # edges from the same source lie together, and are many
    atomic: bool  # messages are added to totals in any order; else in the same order every run

    @property
    def numbers(self) -> int:
        """How many a message consists of, or a total."""
        return 1 if self.ratios else self.states

    @property
    def lanes(self) -> int:
        """Threads of a program."""
        return 32 * self.warps

    @property
    def message(self) -> int:
        """Numbers from one message of an edge to the other."""
        return 1 if self.ratios else self.stride


class Memory(NamedTuple):
    """Where everything is; None where a form has no use for it."""

    source: Tensor  # [edges]: rows of totals
    target: Tensor
    graph: Tensor | None  # [edges]
    weight: Tensor | None  # [R, edges]
    tables: Tensor  # [R, blocks, states * stride * block]: see `_to_lanes`
    messages: Tensor  # [R, blocks, 2 * message * block]
    said: Tensor | None  # [R, blocks, message * block]: messages along the edges before they are normalised
    node: Tensor  # [R, nodes, padded]: finite part of the potentials
    node_counts: Tensor | None  # [R, nodes, padded]: 1 where a state is forbidden
    totals: Tensor  # [3, R, nodes, padded]: of three sweeps that take turns, see `_triton_kernels`
    counts: Tensor | None  # [3, R, nodes, padded]: infinities among the messages
    options: Tensor  # damping, tolerance
    moved: Tensor  # [3, R, graphs]: bits of the largest change of a message; -1 in a graph that has none
    sweeps: Tensor  # [R, graphs]
    stuck: Tensor  # [1]: the first message without a state left, replica * arcs + arc
    groups: Tensor | None  # [3, groups + 1]: first edge, node and graph of each group of small graphs
    arc_offset: Tensor | None  # [nodes + 1]: where the arcs into a node begin in `incoming`
    incoming: Tensor | None  # [arcs]: 2 * edge, + 1 for the arc against it

    def moved_in(self, number: int) -> Tensor:
        """How far messages moved in the latest sweep, or in the last that their graph ran in, [R, graphs]."""
        return self.moved[number % 3].view(self.node.dtype)


def lay_out(
    problem: Problem, form: Form, sizes: Tensor, order: Tensor | None, rank: Tensor | None, groups: Tensor | None
) -> Memory:
    """Put edges in their order, nodes in their rank, and everything where the kernels look for it."""
    node = problem.node.detach()
    replicas, num_nodes, _ = node.shape
    device = node.device
    source, target = problem.arcs.edge_index
    if order is not None:
        source, target = source[order], target[order]
    if rank is not None:
        source, target = rank[source], rank[target]
    source, target = source.int(), target.int()

    start = problem.start
    if start is not None:
        start = normalise(start.detach(), problem.semiring)
    first = Extended.split(node)
    potentials = _padded(first.finite, form, rank)
    node_counts = _padded(first.infinities.int(), form, rank) if form.barred else None
    totals, counts = potentials, node_counts
    if start is not None:
        heard = collect(problem, start)
        totals = _padded(heard.finite, form, rank)
        counts = _padded(heard.infinities.int(), form, rank) if form.barred else None
    shape = (replicas, problem.num_graphs)
    unmoved = node.new_zeros(shape)
    never = torch.where(sizes > 0, torch.inf, -1.0).to(node.dtype).expand(shape)  # -1: there is nothing to settle
    messages = _first_messages(problem, form, order, start)
    arc_offset, incoming = (None, None) if form.atomic else _incoming(source, target, num_nodes)
    return Memory(
        source=source,
        target=target,
        graph=_ordered(problem.edge_graph, order, 0).int() if form.many else None,
        weight=_weights(problem, order) if form.weighted else None,
        tables=_tables(problem, form, order),
        messages=messages,
        said=messages.new_empty(*messages.shape[:2], messages.shape[2] // 2) if form.tiled else None,
        node=potentials,
        node_counts=node_counts,
        totals=_take_turns(totals, potentials),
        counts=None if counts is None or node_counts is None else _take_turns(counts, node_counts),
        options=torch.tensor([problem.damping, problem.tolerance or -1.0], dtype=node.dtype, device=device),
        moved=_take_turns(never, unmoved).view(BITS[node.dtype]),
        sweeps=torch.zeros(shape, dtype=torch.long, device=device),
        stuck=torch.full((1,), torch.iinfo(torch.long).max, device=device),
        groups=groups,
        arc_offset=arc_offset,
        incoming=incoming,
    )


def _take_turns(before: Tensor, cleared: Tensor) -> Tensor:
    """Values for three sweeps: before the first they are third, its own first, and it clears those of the next."""
    values = cleared.new_empty(3, *cleared.shape)
    values[2], values[0] = before, cleared
    return values


def _ordered(values: Tensor, order: Tensor | None, dim: int) -> Tensor:
    return values if order is None else values.index_select(dim, order)


def _padded(rows: Tensor, form: Form, rank: Tensor | None) -> Tensor:
    """[R, nodes, states] -> [R, nodes, padded], nodes in their new order."""
    if form.ratios:
        rows = _ratios(rows)
    wide = rows.new_zeros(*rows.shape[:2], form.padded)
    if rank is None:
        wide[..., : form.numbers] = rows
    else:
        wide[:, rank, : form.numbers] = rows
    return wide


def _ratios(logs: Tensor) -> Tensor:
    """[..., 2] -> [..., 1]."""
    return logs[..., 1:] - logs[..., :1]


def _weights(problem: Problem, order: Tensor | None) -> Tensor:
    weights = problem.appearance.detach().expand(problem.node.shape[0], -1)
    return _ordered(weights, order, 1).contiguous()


def _incoming(source: Tensor, target: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The arcs into each node, one node after another."""
    ends = torch.cat([target, source]).long()
    edge = torch.arange(len(source), device=source.device)
    code = torch.cat([2 * edge, 2 * edge + 1])
    counts = torch.bincount(ends, minlength=num_nodes)
    offset = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return offset.int(), code[ends.argsort(stable=True)].int()


def _to_lanes(values: Tensor, form: Form) -> Tensor:
    """[R, edges, rows, states] -> [R, blocks, rows * stride * block].

    A block holds `block` edges, chunk after chunk as [rows, block, chunk]. Lanes after the last edge are not set, and
    states beyond the last weigh nothing.
    """
    replicas, num_edges, rows, states = values.shape
    shape = (replicas, -(-num_edges // form.block), rows * form.stride * form.block)
    blocks = values.new_empty(shape) if states == form.stride else values.new_full(shape, -torch.inf)
    for lanes, chunk in _lane_views(blocks, values, form):
        lanes.copy_(chunk)
    return blocks


def _lane_views(blocks: Tensor, values: Tensor, form: Form) -> Iterator[tuple[Tensor, Tensor]]:
    """The same numbers in both layouts, as views of the same shape: chunk by chunk, whole blocks and the rest."""
    replicas, num_edges, rows, states = values.shape
    if form.block == 1:
        yield blocks.unflatten(-1, (rows, form.stride))[..., :states], values
        return
    whole, rest = divmod(num_edges, form.block)
    until = whole * form.block
    for start, size in zip(form.starts, form.sizes, strict=True):
        lanes = blocks[:, :, start * rows * form.block : (start + size) * rows * form.block]
        lanes = lanes.view(replicas, -1, rows, form.block, size).transpose(2, 3)
        chunk = values[..., start : start + size]
        yield lanes[:, :whole], chunk[:, :until].unflatten(1, (whole, form.block))
        if rest:
            yield lanes[:, whole, :rest], chunk[:, until:]


def _tables(problem: Problem, form: Form, order: Tensor | None) -> Tensor:
    """Potentials over appearance; where sums are linear, their exponentials, the largest of a table being 1."""
    edge = problem.edge.detach()
    if form.weighted:
        edge = edge / problem.appearance.detach()[..., None, None]
    edge = _ordered(edge, order, 1).contiguous()
    if form.block == 1 and form.stride == form.states and not form.linear:
        return edge  # as it lies there; it is only read
    blocks = _to_lanes(edge, form)
    if form.linear:
        highest = edge.flatten(-2).amax(-1)[..., None, None].expand_as(edge)
        for lanes, top in _lane_views(blocks, highest, form):
            lanes -= top
        blocks.exp_()
    return blocks


def _first_messages(problem: Problem, form: Form, order: Tensor | None, start: Tensor | None) -> Tensor:
    node, num_edges = problem.node, problem.edge.shape[-3]
    replicas, blocks = node.shape[0], -(-num_edges // form.block)
    if start is None:
        value = 0.0 if form.best or form.ratios else -math.log(form.states)
        return node.new_full((replicas, blocks, 2 * form.message * form.block), value)
    pairs = _ordered(start.view(replicas, 2, num_edges, form.states), order, 2)
    pairs = pairs.transpose(1, 2)
    return _to_lanes(_ratios(pairs).mT if form.ratios else pairs, form)


def read_messages(messages: Tensor, form: Form, order: Tensor | None, num_edges: int) -> Tensor:
    """Messages as a solution has them, [R, arcs, states]."""
    pairs = messages.new_empty(messages.shape[0], 2, num_edges, form.states)
    rows = pairs.transpose(1, 2)
    if form.ratios:
        rows = rows[..., :1].mT  # of an edge both, as one row
    for lanes, chunk in _lane_views(messages, rows, form):
        chunk.copy_(lanes)
    if form.ratios:
        _normalise_ratios(pairs, form)
    if order is not None:
        pairs = torch.empty_like(pairs).index_copy_(2, order, pairs)
    return pairs.view(pairs.shape[0], 2 * num_edges, form.states)


def _normalise_ratios(pairs: Tensor, form: Form) -> None:
    """Log-messages [..., 2] for ratios, which stand where state 0 will; in place, lest there be three copies."""
    torch.neg(pairs[..., 0], out=pairs[..., 1])
    if form.best:
        pairs.clamp_(min=0.0).neg_()
    else:
        torch.logaddexp(pairs, pairs.new_zeros(()), out=pairs).neg_()
