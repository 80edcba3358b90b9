"""How a problem is solved on a GPU: what kernels are compiled for, the order of edges, groups of small graphs."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import normalise
from accord.inference.kernels.triton._layout import Form, Memory, lay_out, lay_out_tables, leaves_indices

WARPS, WIDTH = 4, 128  # of a program, and edges of a block, one for each lane
UNROLLED = 16  # states; beyond, the rows of an edge do not all fit into the registers of a lane
# Rows of each table at once, and bytes of all tables, where the threads of a warp share the rows of an edge.
TILES = {"linear": (8, 4096), "best": (8, 2048), "logs": (4, 2048)}
SMALL = 1024, 32  # edges of graphs that one program solves to the end: with up to 8 states, and beyond
RUNS = 2, 16  # edges a node, with which one lane adds for all of the same source: they come by source, or are sorted
MOST_IN_RUNS = 8  # states
SORTED_SWEEPS = 32  # so many to come make up for sorting
ORDER_BYTES = 8 + 2 * (8 + 8 + 3 * 8)  # an edge, while its arcs are sorted: number, ends, codes, and the sort
SPAN = {torch.float32: 60.0, torch.float64: 600.0}  # nats; exp(potential - max) of wider tables may underflow


@dataclass(frozen=True)
class Plan:
    """A problem ready to be swept over."""

    form: Form
    memory: Memory
    order: Tensor | None  # [edges]: which edge of the problem comes where; None: as it is
    rank: Tensor | None  # [nodes]: where a node of the problem went; None: it stayed

    @property
    def num_edges(self) -> int:
        """How many edges there are."""
        return int(self.memory.source.shape[0])


class _Facts(NamedTuple):
    """What must be known of the values before anything is laid out; read back from the device at once."""

    barred: bool
    span: float
    largest_graph: int
    edges_sorted: bool  # those of a graph lie together
    nodes_sorted: bool
    in_runs: bool  # edges come by source


def make_plan(problem: Problem) -> Plan:
    """Lay out a problem that has edges."""
    if problem.start is not None:  # first, since what it takes meanwhile is more than what it leaves
        problem = replace(problem, start=normalise(problem.start.detach(), problem.semiring))
    sizes = _sizes(problem)
    low, high = problem.edge.detach().flatten(-2).aminmax(dim=-1)
    facts = _look(problem, low, high, sizes)
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
    """What a plan takes while it is made, told without looking at potentials.

    As if nothing were forbidden, tables had a moderate span, and the graphs of a batch came in order.
    """
    (replicas, num_nodes, states), each = problem.node.shape, problem.node.element_size()
    num_edges = problem.arcs.num_edges
    lanes = -(-num_edges // WIDTH) * WIDTH
    row = 1 if states == 2 else states  # a ratio
    tables, messages = states**2, 2 * row
    if states > UNROLLED:
        tables, messages = (wide * _whole_vectors(states, each) for wide in (states, 3))  # one not yet normalised
    making, order = 1, 0  # a maximum an edge
    if problem.weighted:
        making += 1  # the appearance
        messages += 1  # and once more, in its new order
    if not problem.edge[0].is_contiguous():
        making += states**2  # a copy that is
    if sorts_edges(problem):
        order = 4 * 8  # that order, and the sort
    started = 0 if problem.start is None else 2 * states  # messages in logs that sum to one
    making += started
    messages += 2 * started  # and along the edges
    # Before the tables: messages on their way to logs; then the lowest, the highest, their difference, its quotient.
    before = max(4 * started, started + 4)
    edges = replicas * each * max(before * num_edges, lanes * tables + num_edges * making, lanes * (tables + messages))
    narrow = order or not leaves_indices(problem)  # 32 bits
    strided = problem.arcs.edge_index.stride(1) != 1
    ends = num_edges * (order + (8 if narrow else 16 * strided) + (4 if problem.num_graphs > 1 else 0))
    # Totals of three sweeps, padded; potentials or totals to start from, and infinities among them.
    nodes = replicas * num_nodes * each * (3 * (1 << (row - 1).bit_length()) + 2 * states)
    in_order = torch.are_deterministic_algorithms_enabled()
    return edges + ends + nodes + (num_edges * ORDER_BYTES if in_order else 0)


def _sizes(problem: Problem) -> Tensor:
    """Edges of each graph; not by bincount, which waits for the device."""
    if problem.num_graphs == 1:
        return problem.edge_graph.new_full((1,), problem.arcs.num_edges)
    ones = problem.edge_graph.new_ones(1).expand_as(problem.edge_graph)
    return problem.edge_graph.new_zeros(problem.num_graphs).scatter_add_(0, problem.edge_graph, ones)


def _look(problem: Problem, low: Tensor, high: Tensor, sizes: Tensor) -> _Facts:
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
    """Edges of graphs that one program solves to the end."""
    return SMALL[problem.node.shape[-1] > 8]


def _runs_pay(problem: Problem, in_runs: bool = False) -> bool:
    """Whether so many edges have the same source that one lane should add for all of them, sorted if need be."""
    given, sorted_ = (problem.arcs.num_edges >= many * problem.node.shape[-2] for many in RUNS)
    return given if in_runs else sorted_ and problem.max_sweeps >= SORTED_SWEEPS


def sorts_edges(problem: Problem) -> bool:
    """Whether edges that do not come by source are put in that order, told without looking at potentials."""
    return problem.node.shape[-1] <= MOST_IN_RUNS and _runs_pay(problem)


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
    """What the cache that all programs share can hold; as good as everything in the interpreter."""
    return int(torch.cuda.get_device_properties(device).L2_cache_size) if device.type == "cuda" else 2**62


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
    first_graph = torch.cat([group.diff(prepend=group[:1] - 1).nonzero().flatten(), group.new_full((1,), len(sizes))])
    edge_bounds = torch.cat([before, sizes.sum()[None]])[first_graph]
    node_bounds = torch.searchsorted(node_graph, first_graph)
    return torch.stack([edge_bounds, node_bounds, first_graph]).int().contiguous()
