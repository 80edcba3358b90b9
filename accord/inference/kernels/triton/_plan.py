"""How a problem is solved on a GPU: the form of the kernels, the order of edges, and groups of small graphs."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import normalise
from accord.inference.kernels.triton._form import Form
from accord.inference.kernels.triton._layout import Memory, lay_out, lay_out_tables, leaves_indices

WARPS, WIDTH = 4, 128  # warps of a program, and edges of a block, one for each thread
UNROLLED = 16  # states; with more, the rows of an edge do not fit in the registers of one thread
# Rows of each table at once, and bytes of all tables, if the threads of a warp share the rows of an edge.
TILES = {"linear": (8, 4096), "best": (8, 2048), "logs": (4, 2048)}
SMALL = 1024, 32  # largest number of edges of graphs that one program solves completely: up to 8 states, and with more
# Edges per node from which on one thread adds for all edges of a source: if edges come sorted by source, and if not.
RUNS = 2, 16
MOST_IN_RUNS = 8  # states
SORTED_SWEEPS = 32  # least number of sweeps that make sorting worthwhile
ORDER_BYTES = 8 + 2 * (8 + 8 + 3 * 8)  # per edge, while its arcs are sorted: number, ends, codes, and the sort
SPAN = {torch.float32: 60.0, torch.float64: 600.0}  # nats; exp(potential - max) of wider tables may underflow


@dataclass(frozen=True)
class Plan:
    """A problem in GPU memory, ready for sweeps."""

    form: Form
    memory: Memory
    order: Tensor | None  # [edges]: the edge of the problem at each position; None if the order is unchanged
    rank: Tensor | None  # [nodes]: the position of each node of the problem; None if the order is unchanged

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return int(self.memory.source.shape[0])


class _Facts(NamedTuple):
    """Properties of the values that the layout depends on; read back from the device in one transfer."""

    barred: bool
    span: float
    largest_graph: int
    edges_sorted: bool  # by graph
    nodes_sorted: bool  # by graph
    in_runs: bool  # edges are sorted by source


def make_plan(problem: Problem) -> Plan:
    """Lay out a problem that has edges."""
    if problem.start is not None:  # first, since its temporaries take more memory than its result
        problem = replace(problem, start=normalise(problem.start.detach(), problem.semiring))
    sizes = _sizes(problem)
    low, high = problem.edge.detach().flatten(-2).aminmax(dim=-1)
    facts = _read_facts(problem, low, high, sizes)
    del low
    form = _form(problem, facts)
    order = rank = groups = None
    if form.runs and not facts.in_runs:
        order = problem.arcs.edge_index[0].argsort()
    if facts.largest_graph <= _small(problem):
        if not facts.edges_sorted:
            order = problem.edge_graph.argsort(stable=True)
        node_graph = problem.node_graph.contiguous()
        if not facts.nodes_sorted:
            node_graph, by_graph = node_graph.sort(stable=True)
            rank = torch.empty_like(by_graph)
            rank[by_graph] = torch.arange(len(by_graph), device=by_graph.device)
        groups = _groups(sizes, node_graph, facts.largest_graph, form)
    tables = lay_out_tables(problem, form, high, order)
    del high  # before there are messages
    return Plan(form, lay_out(problem, form, tables, sizes, order, rank, groups), order, rank)


def planned_bytes(problem: Problem) -> int:
    """Peak memory while a plan is made, estimated without reading potentials.

    Assumes that nothing is forbidden, that tables have a moderate span, and that the graphs of a batch are in order.
    """
    (replicas, num_nodes, states), each = problem.node.shape, problem.node.element_size()
    num_edges = problem.arcs.num_edges
    lanes = -(-num_edges // WIDTH) * WIDTH
    row = 1 if states == 2 else states  # a ratio
    tables, messages = states**2, 2 * row
    if states > UNROLLED:
        tables, messages = (wide * _whole_vectors(states, each) for wide in (states, 3))  # one not yet normalised
    making, order = 1, 0  # one maximum for each edge
    if problem.weighted:
        making += 1  # the appearance
        messages += 1  # a copy of it in the new order
    if not problem.edge[0].is_contiguous():
        making += states**2  # a contiguous copy
    if sorts_edges(problem):
        order = 4 * 8  # the order and the sort
    started = 0 if problem.start is None else 2 * states  # messages in logs that sum to one
    making += started
    messages += 2 * started
    # Before there are tables: temporaries of the messages; then minima, maxima, their differences and quotients.
    before = max(4 * started, started + 4)
    edges = replicas * each * max(before * num_edges, lanes * tables + num_edges * making, lanes * (tables + messages))
    narrow = order or not leaves_indices(problem)  # 32 bits
    strided = problem.arcs.edge_index.stride(1) != 1
    ends = num_edges * (order + (8 if narrow else 16 * strided) + (4 if problem.num_graphs > 1 else 0))
    # Totals of three sweeps, padded; potentials or totals to start from, and counts of infinities.
    nodes = replicas * num_nodes * each * (3 * (1 << (row - 1).bit_length()) + 2 * states)
    in_order = torch.are_deterministic_algorithms_enabled()
    return edges + ends + nodes + (num_edges * ORDER_BYTES if in_order else 0)


def _sizes(problem: Problem) -> Tensor:
    """Number of edges of each graph; without bincount, which waits for the device."""
    if problem.num_graphs == 1:
        return problem.edge_graph.new_full((1,), problem.arcs.num_edges)
    ones = problem.edge_graph.new_ones(1).expand_as(problem.edge_graph)
    return problem.edge_graph.new_zeros(problem.num_graphs).scatter_add_(0, problem.edge_graph, ones)


def _read_facts(problem: Problem, low: Tensor, high: Tensor, sizes: Tensor) -> _Facts:
    lowest = torch.minimum(low.amin(), problem.node.detach().amin())
    if problem.start is not None:
        lowest = torch.minimum(lowest, problem.start.detach().amin())
    spans = high - low
    if problem.weighted:
        spans = spans / problem.appearance.detach()
    facts = [lowest, spans.amax(), (problem.arcs.edge_index[0].diff() >= 0).all()]
    if problem.num_graphs > 1:
        facts += [sizes.amax(), *((graph.diff() >= 0).all() for graph in (problem.edge_graph, problem.node_graph))]
    lowest, span, in_runs, *graphs = torch.stack([fact.double() for fact in facts]).tolist()
    largest, edges_sorted, nodes_sorted = graphs or (problem.arcs.num_edges, True, True)
    return _Facts(lowest == -torch.inf, span, int(largest), bool(edges_sorted), bool(nodes_sorted), bool(in_runs))


def _small(problem: Problem) -> int:
    """Largest number of edges of graphs that one program solves completely."""
    return SMALL[problem.node.shape[-1] > 8]


def _runs_pay(problem: Problem, in_runs: bool = False) -> bool:
    """Whether enough edges share a source that one thread should add for all of them, after sorting if necessary."""
    given, sorted_ = (problem.arcs.num_edges >= many * problem.node.shape[-2] for many in RUNS)
    return given if in_runs else sorted_ and problem.max_sweeps >= SORTED_SWEEPS


def sorts_edges(problem: Problem) -> bool:
    """Whether edges that are not sorted by source would be sorted, decided without reading potentials."""
    return problem.node.shape[-1] <= MOST_IN_RUNS and _runs_pay(problem)


def _whole_vectors(numbers: int, each: int) -> int:
    """`numbers` rounded up to whole vectors of 16 bytes."""
    vector = 16 // each
    return -(-numbers // vector) * vector


def _form(problem: Problem, facts: _Facts) -> Form:
    states, dtype = problem.node.shape[-1], problem.node.dtype
    atomic = not torch.are_deterministic_algorithms_enabled()
    ratios = states == 2 and not facts.barred  # otherwise a ratio could be infinite
    padded = 1 if ratios else 1 << (states - 1).bit_length()
    best = problem.semiring == "max"
    # With a table of moderate span, the largest sum cannot underflow, whatever the cavity is.
    linear = not best and facts.span <= SPAN[dtype]
    vector = min(16 // dtype.itemsize, padded)
    tiled = states > UNROLLED or not (best or linear or ratios)
    warps = 1 if tiled else WARPS
    block = 1 if tiled or ratios else WIDTH
    tile_rows, tile_bytes = TILES["best" if best else "linear" if linear else "logs"]
    rows = min(tile_rows, padded)
    starts, sizes = _chunks(states, vector)
    return Form(
        states=states,
        ratios=ratios,
        padded=padded,
        width=min(32, max(1, tile_bytes // (dtype.itemsize * rows * padded))) if tiled else WIDTH,
        warps=warps,
        block=block,
        stride=_whole_vectors(states, dtype.itemsize) if tiled else states,
        tiled=tiled,
        rows=rows,
        starts=starts,
        sizes=sizes,
        nodes=max(1, 32 * warps * vector // padded),
        vector=vector,
        count_vector=min(4, padded),
        best=best,
        linear=linear,
        barred=facts.barred,
        weighted=problem.weighted,
        damped=problem.damping != 0,
        many=problem.num_graphs > 1,
        runs=atomic
        and not tiled
        and not facts.barred
        and states <= MOST_IN_RUNS
        and facts.largest_graph > _small(problem)
        and _runs_pay(problem, facts.in_runs),
        atomic=atomic,
        cached=2 * problem.node.shape[-2] * padded * dtype.itemsize <= _cache_bytes(problem.node.device),
    )


def _cache_bytes(device: torch.device) -> int:
    """Size of the cache that all programs share; in the interpreter, practically unlimited."""
    return int(torch.cuda.get_device_properties(device).L2_cache_size) if device.type == "cuda" else 2**62


def _chunks(states: int, vector: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split a row into vectors, and the remainder into smaller ones: their first states and their sizes."""
    starts, sizes, start = [], [], 0
    while start < states:
        while start + vector > states:
            vector //= 2
        starts.append(start)
        sizes.append(vector)
        start += vector
    return tuple(starts), tuple(sizes)


def _groups(sizes: Tensor, node_graph: Tensor, largest: int, form: Form) -> Tensor:
    """Group consecutive graphs to fill a block: where the edges, nodes and graphs of each group begin."""
    before = sizes.cumsum(0) - sizes
    # The last graph of a group still ends within the block, if graphs are small enough.
    group = before // max(form.width - largest + 1, form.width // 4, 1)
    first_graph = torch.cat([group.diff(prepend=group[:1] - 1).nonzero().flatten(), group.new_full((1,), len(sizes))])
    edge_bounds = torch.cat([before, sizes.sum()[None]])[first_graph]
    node_bounds = torch.searchsorted(node_graph, first_graph)
    return torch.stack([edge_bounds, node_bounds, first_graph]).int().contiguous()
