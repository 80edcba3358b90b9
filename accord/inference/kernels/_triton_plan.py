"""How a problem lies in the memory of a GPU: the order of edges and nodes, groups of small graphs, layouts, buffers."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from accord.inference._extended import Extended
from accord.inference.kernels._interface import Problem
from accord.inference.kernels._reference import collect, normalise

WARPS, WIDTH = 4, 128  # of a program, and edges of a block, one for each lane
UNROLLED = 16  # states; beyond, the rows of an edge do not all fit into the registers of a lane
TILE_BYTES, TILE_ROWS = 4096, 8  # of tables at once, where the threads of a warp share the rows of an edge
TURN = 2048  # entries of totals that a program sets at once
SMALL = 1024, 32  # edges of graphs that one program solves to the end: with up to 8 states, and beyond
RUNS, MOST_IN_RUNS = 16, 8  # edges a node and states, with which one lane adds for all that have the same source
SORTED_SWEEPS = 32  # so many to come make up for sorting edges by source
ORDER_BYTES = 2 * (8 + 8 + 3 * 8)  # an edge, while its arcs are sorted by where they end: ends, codes, and the sort
SPAN = {torch.float32: 60.0, torch.float64: 600.0}  # nats; exp(potential - max) of wider tables may underflow
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
    turn: int  # nodes or graphs at once
    vector: int  # numbers in 16 bytes, or in a row of totals if that is less
    count_vector: int
    best: bool  # max-product
    linear: bool  # sums of exp(potential); else of logs, which are safe for any table
    barred: bool  # there may be -inf
    weighted: bool  # edge appearance is not 1 everywhere
    damped: bool
    stops: bool  # there is a tolerance
    many: bool  # more than one graph
    runs: bool  # edges from the same source lie together, and are many
    atomic: bool  # messages are added to totals in any order; else in the same order every run

    @property
    def numbers(self) -> int:
        """How many a message consists of, or a total."""
        return 1 if self.ratios else self.states

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
    totals: Tensor  # [2, R, nodes, padded]: of the last sweep and of this one
    counts: Tensor | None  # [2, R, nodes, padded]: infinities among the messages
    options: Tensor  # damping, tolerance
    running: Tensor  # [R, graphs]
    moved: Tensor  # [R, graphs]: bits of the largest change in this sweep
    residual: Tensor  # [R, graphs]
    sweeps: Tensor  # [R, graphs]
    stuck: Tensor  # [1]: the first message without a state left, replica * arcs + arc
    groups: Tensor | None  # [3, groups + 1]: first edge, node and graph of each group of small graphs
    arc_offset: Tensor | None  # [nodes + 1]: where the arcs into a node begin in `incoming`
    incoming: Tensor | None  # [arcs]: 2 * edge, + 1 for the arc against it


@dataclass(frozen=True)
class Plan:
    """A problem ready to be swept over."""

    form: Form
    memory: Memory
    order: Tensor | None  # [edges]: which edge of the problem comes where; None: as it is

    @property
    def num_edges(self) -> int:
        """How many edges there are."""
        return int(self.memory.source.shape[0])


class _Facts(NamedTuple):
    """What must be known of the values before anything is laid out; read back from the device at once."""

    barred: bool
    span: float
    weighted: bool
    largest_graph: int
    sorted: bool  # edges of a graph lie together
    in_runs: bool  # edges come by source


def make_plan(problem: Problem) -> Plan:
    """Lay out a problem that has edges."""
    num_edges = problem.edge.shape[-3]
    edge_graph = problem.edge_graph
    if problem.num_graphs == 1:
        edge_graph, sizes = edge_graph[:1], torch.tensor([num_edges], device=edge_graph.device)
    else:
        sizes = torch.bincount(edge_graph, minlength=problem.num_graphs)
    facts = _look(problem, edge_graph, sizes)
    form = _form(problem, facts)
    order = rank = groups = None
    if form.runs and not facts.in_runs:
        order = problem.arcs.edge_index[0].argsort()
    if facts.largest_graph <= _small(problem):
        if not facts.sorted:
            order = edge_graph.argsort(stable=True)
        node_graph = _node_graph(problem)
        if bool((node_graph.diff() < 0).any()):
            node_graph, by_graph = node_graph.sort(stable=True)
            rank = torch.empty_like(by_graph)
            rank[by_graph] = torch.arange(len(by_graph), device=by_graph.device)
        groups = _groups(sizes, node_graph, facts.largest_graph, form)
    return Plan(form, _lay_out(problem, form, sizes, order, rank, groups), order)


def planned_bytes(problem: Problem) -> int:
    """What a plan takes while it is made, told without looking at potentials.

    As if nothing were forbidden, tables had a moderate span, and the graphs of a batch came in order.
    """
    (replicas, num_nodes, states), each = problem.node.shape, problem.node.element_size()
    num_edges = problem.arcs.num_edges
    lanes = -(-num_edges // WIDTH) * WIDTH
    row = 1 if states == 2 else states  # a ratio
    numbers = states**2 + 2 * row  # tables, messages
    if states > UNROLLED:
        numbers = (states + 3) * _whole_vectors(states, each)  # and messages not yet normalised
    copied = 0
    if problem.appearance.stride(-1) != 0 or bool((problem.appearance[..., :1] != 1).any()):
        copied += states**2 + 1  # tables divided by the appearance, and the appearance itself
    elif not problem.edge.is_contiguous():
        copied += states**2  # tables that replicas share, one for each
    if problem.start is not None:
        copied += 4 * states  # in logs that sum to one, and along the edges
    order = 0
    if states <= MOST_IN_RUNS and _runs_pay(problem):
        copied, order = copied + states**2, 4 * 8  # tables in their new order; that order, and the sort
    # Lowest, highest, their difference and its quotient are there before the tables; a maximum an edge beside them.
    edges = replicas * each * max(lanes * numbers + num_edges * (1 + copied), 4 * num_edges)
    ends = num_edges * (8 + order + (4 if problem.num_graphs > 1 else 0))
    # Potentials, totals of two sweeps, and what these are put together from: states apart, and padded.
    nodes = replicas * num_nodes * each * (5 * (1 << (row - 1).bit_length()) + 2 * states)
    in_order = torch.are_deterministic_algorithms_enabled()
    return edges + ends + nodes + (num_edges * ORDER_BYTES if in_order else 0)


def _node_graph(problem: Problem) -> Tensor:
    """Which graph a node belongs to; nodes without arcs go with those before them, so that they keep the order."""
    known = torch.full((problem.node.shape[1],), -1, device=problem.node.device)
    for ends in problem.arcs.edge_index:
        known[ends] = problem.edge_graph
    return torch.where(known < 0, known.cummax(0).values, known).clamp(min=0)


def _look(problem: Problem, edge_graph: Tensor, sizes: Tensor) -> _Facts:
    node, edge, appearance = problem.node.detach(), problem.edge.detach(), problem.appearance.detach()
    low, high = edge.flatten(-2).aminmax(dim=-1)
    lowest = torch.minimum(low.amin(), node.amin())
    if problem.start is not None:
        lowest = torch.minimum(lowest, problem.start.detach().amin())
    facts = [lowest == -torch.inf, ((high - low) / appearance).amax(), (appearance != 1).any(), sizes.amax()]
    facts += [(edge_graph.diff() >= 0).all(), (problem.arcs.edge_index[0].diff() >= 0).all()]
    barred, span, weighted, largest, ordered, in_runs = torch.stack([fact.double() for fact in facts]).tolist()
    return _Facts(bool(barred), span, bool(weighted), int(largest), bool(ordered), bool(in_runs))


def _small(problem: Problem) -> int:
    """Edges of graphs that one program solves to the end."""
    return SMALL[problem.node.shape[-1] > 8]


def _runs_pay(problem: Problem, in_runs: bool = False) -> bool:
    """Whether so many edges have the same source that one lane should add for all of them, sorted if need be."""
    many = problem.arcs.num_edges >= RUNS * problem.node.shape[-2]
    return many and (in_runs or problem.max_sweeps >= SORTED_SWEEPS)


def _whole_vectors(numbers: int, each: int) -> int:
    """So many that they fill vectors of 16 bytes."""
    vector = 16 // each
    return -(-numbers // vector) * vector


def _form(problem: Problem, facts: _Facts) -> Form:
    states, dtype = problem.node.shape[-1], problem.node.dtype
    atomic = not torch.are_deterministic_algorithms_enabled()
    ratios = states == 2 and not facts.barred  # or a ratio could be infinite
    padded = 1 if ratios else 1 << (states - 1).bit_length()
    best = problem.semiring == "max"
    # The largest sum of a table of moderate span cannot underflow, whatever the cavity.
    linear = not best and facts.span <= SPAN[dtype]
    vector = min(16 // dtype.itemsize, padded)
    tiled = states > UNROLLED or not (best or linear or ratios)
    block = 1 if tiled or ratios else WIDTH
    rows = min(TILE_ROWS, padded)
    starts, sizes = _chunks(states, vector)
    return Form(
        states=states,
        ratios=ratios,
        padded=padded,
        width=min(32, max(1, TILE_BYTES // (dtype.itemsize * rows * padded))) if tiled else WIDTH,
        warps=1 if tiled else WARPS,
        block=block,
        stride=_whole_vectors(states, dtype.itemsize) if tiled else states,
        tiled=tiled,
        rows=rows,
        starts=starts,
        sizes=sizes,
        turn=min(TURN // padded, WIDTH),
        vector=vector,
        count_vector=min(4, padded),
        best=best,
        linear=linear,
        barred=facts.barred,
        weighted=facts.weighted,
        damped=problem.damping != 0,
        stops=problem.tolerance != 0,
        many=problem.num_graphs > 1,
        runs=atomic
        and not tiled
        and not facts.barred
        and states <= MOST_IN_RUNS
        and facts.largest_graph > _small(problem)
        and _runs_pay(problem, facts.in_runs),
        atomic=atomic,
    )


def _chunks(states: int, vector: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cut a row into vectors, and what is left into smaller ones."""
    starts, sizes, start = [], [], 0
    while start < states:
        while start + vector > states:
            vector //= 2
        starts.append(start)
        sizes.append(vector)
        start += vector
    return tuple(starts), tuple(sizes)


def _groups(sizes: Tensor, node_graph: Tensor, largest: int, form: Form) -> Tensor:
    """Consecutive graphs, as many as fill a block: where each group's edges, nodes and graphs begin."""
    before = sizes.cumsum(0) - sizes
    # So many that the last graph of a group still ends within the block, where graphs are small enough.
    group = before // max(form.width - largest + 1, form.width // 4, 1)
    first_graph = torch.cat([group.diff(prepend=group[:1] - 1).nonzero().flatten(), group.new_tensor([len(sizes)])])
    edge_bounds = torch.cat([before, sizes.sum()[None]])[first_graph]
    node_bounds = torch.searchsorted(node_graph, first_graph)
    return torch.stack([edge_bounds, node_bounds, first_graph]).int().contiguous()


def _lay_out(
    problem: Problem, form: Form, sizes: Tensor, order: Tensor | None, rank: Tensor | None, groups: Tensor | None
) -> Memory:
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
    totals = first if start is None else collect(problem, start)
    shape = (replicas, problem.num_graphs)
    running = (sizes > 0).int().expand(shape).contiguous()  # a graph without edges has nothing to settle
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
        node=_padded(first.finite, form, rank),
        node_counts=_padded(first.infinities.int(), form, rank) if form.barred else None,
        totals=_pair(_padded(totals.finite, form, rank), _padded(first.finite, form, rank)),
        counts=_pair(_padded(totals.infinities.int(), form, rank), _padded(first.infinities.int(), form, rank))
        if form.barred
        else None,
        options=torch.tensor([problem.damping, problem.tolerance], dtype=node.dtype, device=device),
        running=running,
        moved=torch.zeros(shape, dtype=BITS[node.dtype], device=device),
        residual=torch.where(running > 0, torch.inf, 0.0).to(node.dtype),
        sweeps=torch.zeros(shape, dtype=torch.long, device=device),
        stuck=torch.full((1,), torch.iinfo(torch.long).max, device=device),
        groups=groups,
        arc_offset=arc_offset,
        incoming=incoming,
    )


def _pair(totals: Tensor, potentials: Tensor) -> Tensor:
    return torch.stack([totals, potentials])


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
