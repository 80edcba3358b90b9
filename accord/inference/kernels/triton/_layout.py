"""How a problem lies in the memory of a GPU: layouts and buffers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import collect

LARGE, FEW = 2**23, 4  # edges and states, with which indices are read as they are given: see `leaves_indices`
TABLE_NUMBERS = 1024  # that a program writes at once, where tables lie edge by edge
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
    cached: bool  # totals fit the cache, if all else streams by

    @property
    def numbers(self) -> int:
        """How many a message consists of, or a total."""
        return 1 if self.ratios else self.states

    @property
    def columns(self) -> int:
        """Numbers from one row to the next, up to a power of two."""
        return 1 << (self.stride - 1).bit_length()

    @property
    def lanes(self) -> int:
        """Threads of a program."""
        return 32 * self.warps

    @property
    def message(self) -> int:
        """Numbers from one message of an edge to the other."""
        return 1 if self.ratios else self.stride

    @property
    def keep(self) -> str:
        """When the cache should give up totals, which are scattered and read many times a sweep."""
        return "evict_last" if self.cached else ""

    @property
    def stream(self) -> str:
        """When it should give up tables, messages and indices, which are read once a sweep."""
        return "evict_first" if self.cached else ""


class Memory(NamedTuple):
    """Where everything is; None where a form has no use for it."""

    source: Tensor  # [edges]: rows of totals
    target: Tensor
    graph: Tensor | None  # [edges]
    weight: Tensor | None  # [R, edges]
    tables: Tensor  # [R, blocks, states * stride * block]: as messages, see `_to_lanes`
    messages: Tensor  # [R, blocks, 2 * message * block]
    said: Tensor | None  # [R, blocks, message * block]: messages along the edges before they are normalised
    node: Tensor  # [R, nodes, numbers]: finite part of the potentials
    node_counts: Tensor | None  # [R, nodes, numbers]: 1 where a state is forbidden
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


def lay_out_tables(problem: Problem, form: Form, highest: Tensor, order: Tensor | None) -> Tensor:
    """Potentials over appearance; where sums are linear, their exponentials, the largest of a table being 1.

    The largest potentials of each table are `highest` [R, edges]. As they are is how they stay if that will do.
    """
    edge = problem.edge.detach()
    replicas, num_edges, states, _ = edge.shape
    if not edge[0].is_contiguous():  # replicas may share them
        edge = edge.contiguous()
    as_given = form.block == 1 and form.stride == states and order is None
    if as_given and edge.is_contiguous() and not form.linear and not form.weighted:
        return edge  # it is only read
    tables = edge.new_empty(replicas, -(-num_edges // form.block), states * form.stride * form.block)
    width = form.block if form.block > 1 else TABLE_NUMBERS // form.columns
    programs = -(-num_edges // width)
    weight = problem.appearance.detach().expand(replicas, -1).contiguous() if form.weighted else None
    given = (edge, edge.stride(0), highest if form.linear else None, weight, order, tables, num_edges, programs)
    from accord.inference.kernels.triton.device._tables import write_tables  # late: it loads Triton

    _launch(write_tables, replicas * programs, *given, width, form)
    return tables


def _launch(kernel: Any, programs: int, *given: object) -> None:
    """Apart from what it launches, so that tests can have it compiled for a GPU that is not there."""
    kernel[(programs,)](*given, num_warps=4)


def lay_out(
    problem: Problem,
    form: Form,
    tables: Tensor,
    sizes: Tensor,
    order: Tensor | None,
    rank: Tensor | None,
    groups: Tensor | None,
) -> Memory:
    """Put edges in their order, nodes in their rank, and everything where the kernels look for it."""
    node = problem.node.detach()
    replicas, num_nodes, _ = node.shape
    source, target = _ends(problem, order, rank)
    messages = _first_messages(problem, form, order)
    node_counts = None
    if form.barred:
        first = Extended.split(node)
        node, node_counts = first.finite, _rows(first.infinities.int(), form, rank)
    node = _rows(node, form, rank)
    totals, counts = node, node_counts
    if problem.start is not None:
        heard = collect(problem, problem.start)
        totals = _rows(heard.finite, form, rank)
        counts = _rows(heard.infinities.int(), form, rank) if form.barred else None
    shape = (replicas, problem.num_graphs)
    never = torch.where(sizes > 0, torch.inf, -1.0).to(node.dtype).expand(shape)  # -1: there is nothing to settle
    arc_offset, incoming = (None, None) if form.atomic else _incoming(source, target, num_nodes)
    return Memory(
        source=source,
        target=target,
        graph=_ordered(problem.edge_graph, order, 0).int() if form.many else None,
        weight=_weights(problem, order) if form.weighted else None,
        tables=tables,
        messages=messages,
        said=messages.new_empty(*messages.shape[:2], messages.shape[2] // 2) if form.tiled else None,
        node=node,
        node_counts=node_counts,
        totals=_take_turns(totals, node, form.padded),
        counts=None if counts is None or node_counts is None else _take_turns(counts, node_counts, form.padded),
        options=node.new_tensor([problem.damping, _tolerance(problem)]),
        moved=_take_turns(never, node.new_zeros(shape), problem.num_graphs).view(BITS[node.dtype]),
        sweeps=torch.zeros(shape, dtype=torch.long, device=node.device),
        stuck=torch.full((1,), torch.iinfo(torch.long).max, device=node.device),
        groups=groups,
        arc_offset=arc_offset,
        incoming=incoming,
    )


def _tolerance(problem: Problem) -> float:
    """What messages must move by, or their graph stops: any residual is above -1, and infinity, at first, above all."""
    return min(problem.tolerance, torch.finfo(problem.node.dtype).max) or -1.0


def leaves_indices(problem: Problem) -> bool:
    """Whether no copy in 32 bits is made: with large graphs of few states it takes memory, and saves little."""
    return problem.arcs.num_edges >= LARGE and problem.node.shape[-1] <= FEW


def _ends(problem: Problem, order: Tensor | None, rank: Tensor | None) -> tuple[Tensor, Tensor]:
    """Rows of totals at both ends of each edge."""
    source, target = problem.arcs.edge_index
    if order is None and rank is None and leaves_indices(problem):
        return source.contiguous(), target.contiguous()
    if order is not None:
        source, target = source[order], target[order]
    if rank is not None:
        source, target = rank[source], rank[target]
    return source.int(), target.int()


def _take_turns(before: Tensor, cleared: Tensor, width: int) -> Tensor:
    """Values for three sweeps: before the first they are third, its own first, and it clears those of the next."""
    values = cleared.new_zeros(3, *cleared.shape[:-1], width)
    values[2, ..., : cleared.shape[-1]], values[0, ..., : cleared.shape[-1]] = before, cleared
    return values


def _ordered(values: Tensor, order: Tensor | None, dim: int) -> Tensor:
    return values if order is None else values.index_select(dim, order)


def _rows(values: Tensor, form: Form, rank: Tensor | None) -> Tensor:
    """[R, nodes, states] -> [R, nodes, numbers], nodes in their new order; what may stay as it is is not copied."""
    rows = _ratios(values) if form.ratios else values
    if rank is None:
        return rows.contiguous()
    return torch.empty_like(rows, memory_format=torch.contiguous_format).index_copy_(1, rank, rows)


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


def _first_messages(problem: Problem, form: Form, order: Tensor | None) -> Tensor:
    node, num_edges = problem.node, problem.edge.shape[-3]
    replicas, blocks = node.shape[0], -(-num_edges // form.block)
    if problem.start is None:
        value = 0.0 if form.best or form.ratios else -math.log(form.states)
        return node.new_full((replicas, blocks, 2 * form.message * form.block), value)
    pairs = _ordered(problem.start.view(replicas, 2, num_edges, form.states), order, 2)
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


def read_totals(totals: Tensor, counts: Tensor | None, form: Form, rank: Tensor | None, last: Tensor) -> Tensor:
    """Node beliefs up to a constant for each, [R, nodes, states], as they were after the last sweep [R]."""
    at = (last % 3, torch.arange(len(last), device=last.device))
    totals = totals[..., : form.numbers][at]
    if counts is not None:
        totals = totals.masked_fill(counts[..., : form.numbers][at] > 0, -torch.inf)
    if rank is not None:
        totals = totals[:, rank]
    return torch.cat([torch.zeros_like(totals), totals], -1) if form.ratios else totals


def _normalise_ratios(pairs: Tensor, form: Form) -> None:
    """Log-messages [..., 2] for ratios, which stand where state 0 will; in place, lest there be three copies."""
    torch.neg(pairs[..., 0], out=pairs[..., 1])
    if form.best:
        pairs.clamp_(min=0.0).neg_()
    else:
        torch.logaddexp(pairs, pairs.new_zeros(()), out=pairs).neg_()
