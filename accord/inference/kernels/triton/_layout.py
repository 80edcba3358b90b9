"""How a problem is arranged in the memory of a GPU: layouts and buffers."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import collect
from accord.inference.kernels.triton._form import Form

# From so many edges on, with at most so many states, edge indices are not converted: see `leaves_indices`.
LARGE, FEW = 2**23, 4
TABLE_NUMBERS = 1024  # numbers that a program writes at once, if tables are stored edge by edge
BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


class Memory(NamedTuple):
    """The buffers of a problem; None if a form does not use one."""

    source: Tensor  # [edges]: rows of totals
    target: Tensor
    graph: Tensor | None  # [edges]
    weight: Tensor | None  # [R, edges]
    tables: Tensor  # [R, blocks, states * stride * block]: laid out like messages, see `_to_lanes`
    messages: Tensor  # [R, blocks, 2 * message * block]
    backward: Tensor | None  # [R, blocks, message * block]: messages against the edges before they are normalised
    node: Tensor  # [R, nodes, numbers]: finite part of the potentials
    node_counts: Tensor | None  # [R, nodes, numbers]: 1 where a state is forbidden
    totals: Tensor  # [3, R, nodes, padded]: for three sweeps in rotation, see device/_kernels.py
    counts: Tensor | None  # [3, R, nodes, padded]: number of infinities among the messages
    options: Tensor  # damping, tolerance
    moved: Tensor  # [3, R, graphs]: bits of the largest change of a message; -1 if the graph has no messages
    sweeps: Tensor  # [R, graphs]
    stuck: Tensor  # [1]: the first message without a possible state, as replica * arcs + arc
    groups: Tensor | None  # [3, groups + 1]: first edge, node and graph of each group of small graphs
    arc_offset: Tensor | None  # [nodes + 1]: where the arcs into a node begin in `incoming`
    incoming: Tensor | None  # [arcs]: 2 * edge, plus 1 for the arc against it

    def moved_in(self, number: int) -> Tensor:
        """Largest change of a message in sweep `number`, or in the last sweep that its graph ran in, [R, graphs]."""
        return self.moved[number % 3].view(self.node.dtype)


def lay_out_tables(problem: Problem, form: Form, highest: Tensor, order: Tensor | None) -> Tensor:
    """Potentials divided by appearance; for linear sums, their exponentials, scaled so that the largest of a table is
    1.

    `highest` [R, edges] holds the largest potential of each table. Returned unchanged when no conversion is needed.
    """
    edge = problem.edge.detach()
    replicas, num_edges, states, _ = edge.shape
    if not edge[0].is_contiguous():  # replicas may share one table each: only the inner axes matter
        edge = edge.contiguous()
    as_given = form.block == 1 and form.stride == states and order is None
    if as_given and edge.is_contiguous() and not form.linear and not form.weighted:
        return edge  # safe to share: the kernels only read it
    tables = edge.new_empty(replicas, -(-num_edges // form.block), states * form.stride * form.block)
    width = form.block if form.block > 1 else TABLE_NUMBERS // form.columns
    programs = -(-num_edges // width)
    weight = problem.appearance.detach().expand(replicas, -1).contiguous() if form.weighted else None
    given = (edge, edge.stride(0), highest if form.linear else None, weight, order, tables, num_edges, programs)
    from accord.inference.kernels.triton.device._tables import write_tables  # late: it loads Triton

    _launch(write_tables, replicas * programs, *given, width, form)
    return tables


def _launch(kernel: Any, programs: int, *given: object) -> None:
    """Launch a kernel; a function of its own, so that tests can replace it and compile for an absent GPU."""
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
    """Allocate and fill all buffers, with edges in the given order and nodes at the given rank."""
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
        begin = collect(problem, problem.start)
        totals = _rows(begin.finite.to(node.dtype), form, rank)
        counts = _rows(begin.infinities.int(), form, rank) if form.barred else None
    shape = (replicas, problem.num_graphs)
    never = torch.where(sizes > 0, torch.inf, -1.0).to(node.dtype).expand(shape)  # -1: nothing has to converge
    arc_offset, incoming = (None, None) if form.atomic else _incoming(source, target, num_nodes)
    return Memory(
        source=source,
        target=target,
        graph=_ordered(problem.edge_graph, order, 0).int() if form.many else None,
        weight=_weights(problem, order) if form.weighted else None,
        tables=tables,
        messages=messages,
        backward=messages.new_empty(*messages.shape[:2], messages.shape[2] // 2) if form.tiled else None,
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
    """The kernels stop a graph whose messages changed by no more than this; -1 never stops one with edges."""
    return min(problem.tolerance, torch.finfo(problem.node.dtype).max) or -1.0


def leaves_indices(problem: Problem) -> bool:
    """Whether edge indices stay in 64 bits: on large graphs of few states a copy costs memory and saves little time."""
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
    """Values for three sweeps in rotation: the first sweep reads entry 2, writes entry 0, and clears entry 1."""
    values = cleared.new_zeros(3, *cleared.shape[:-1], width)
    values[2, ..., : cleared.shape[-1]], values[0, ..., : cleared.shape[-1]] = before, cleared
    return values


def _ordered(values: Tensor, order: Tensor | None, dim: int) -> Tensor:
    return values if order is None else values.index_select(dim, order)


def _rows(values: Tensor, form: Form, rank: Tensor | None) -> Tensor:
    """[R, nodes, states] -> [R, nodes, numbers], nodes in their new order; copied only if necessary."""
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
    """The arcs into each node, sorted by node."""
    ends = torch.cat([target, source]).long()
    edge = torch.arange(len(source), device=source.device)
    code = torch.cat([2 * edge, 2 * edge + 1])
    counts = torch.bincount(ends, minlength=num_nodes)
    offset = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return offset.int(), code[ends.argsort(stable=True)].int()


def _to_lanes(values: Tensor, form: Form) -> Tensor:
    """[R, edges, rows, states] -> [R, blocks, rows * stride * block].

    A block holds `block` edges, chunk after chunk as [rows, block, chunk]. Lanes after the last edge are not set;
    padding states are -inf.
    """
    replicas, num_edges, rows, states = values.shape
    shape = (replicas, -(-num_edges // form.block), rows * form.stride * form.block)
    blocks = values.new_empty(shape) if states == form.stride else values.new_full(shape, -torch.inf)
    for lanes, chunk in _lane_views(blocks, values, form):
        lanes.copy_(chunk)
    return blocks


def _lane_views(blocks: Tensor, values: Tensor, form: Form) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of views of equal shape on both layouts: for each chunk, the full blocks and the last, partial one."""
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
    """Messages from the kernel's layout to that of a solution, [R, arcs, states]."""
    pairs = messages.new_empty(messages.shape[0], 2, num_edges, form.states)
    rows = pairs.transpose(1, 2)
    if form.ratios:
        rows = rows[..., :1].mT  # both messages of an edge as one row
    for lanes, chunk in _lane_views(messages, rows, form):
        chunk.copy_(lanes)
    if form.ratios:
        _normalise_ratios(pairs, form)
    if order is not None:
        pairs = torch.empty_like(pairs).index_copy_(2, order, pairs)
    return pairs.view(pairs.shape[0], 2 * num_edges, form.states)


def read_totals(totals: Tensor, counts: Tensor | None, form: Form, rank: Tensor | None, last: Tensor) -> Tensor:
    """Node beliefs up to a constant for each node, [R, nodes, states], after the last sweep [R]."""
    at = (last % 3, torch.arange(len(last), device=last.device))
    totals = totals[..., : form.numbers][at]
    if counts is not None:
        totals = totals.masked_fill(counts[..., : form.numbers][at] > 0, -torch.inf)
    if rank is not None:
        totals = totals[:, rank]
    return torch.cat([torch.zeros_like(totals), totals], -1) if form.ratios else totals


def _normalise_ratios(pairs: Tensor, form: Form) -> None:
    """Replace log-ratios, stored in the place of state 0, by log-messages [..., 2]; in place, to save memory."""
    torch.neg(pairs[..., 0], out=pairs[..., 1])
    if form.best:
        pairs.clamp_(min=0.0).neg_()
    else:
        torch.logaddexp(pairs, pairs.new_zeros(()), out=pairs).neg_()
