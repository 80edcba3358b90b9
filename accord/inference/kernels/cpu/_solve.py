"""Belief propagation on CPUs by the fused C++ kernel.

One pass over each edge's table serves both directions, nothing of size [arcs, states, states] is made, and small graphs
are solved completely while they are in cache. Not differentiable. See docs/adr/0004-fused-cpu-kernel.md.
"""

import ctypes
import logging
from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, InfeasibleError, OptionError
from accord.inference.kernels._interface import Problem, Solution
from accord.inference.kernels.cpu._build import BuildError, load_library

log = logging.getLogger("accord.inference")

MAX_STATES = 4096  # the entries of 16 tables are numbered in 32 bits, and one table takes 64 MB in float32
LANES = 16  # edges of a block, of which the last may have empty ones; as in native/simd.hpp for float32 and AVX-512
MAX_REDUCED = 8  # up to so many states, tables are stored without their last row and column; as in native/reduced.hpp
LARGE_GRAPH = 2048  # edges; graphs with fewer are solved several at a time, as in native/plan.hpp
MAX_EDGES = 2**30  # edges and rows are numbered in 32 bits
MAX_TOTALS = 2**35  # bytes of the totals, which are addressed in 32 bits in steps of 8 bytes
FUNCTIONS = {torch.float32: "accord_propagate_float32", torch.float64: "accord_propagate_float64"}
SOLVED, OUT_OF_MEMORY, NO_THREADS, OUT_OF_RANGE = range(4)  # what the kernel returns, as in native/propagate.cpp
# Estimated work, edges x sweeps x (states + 8)^2, below which starting a thread (50 us) takes longer than it saves.
ONE_THREAD_WORK = 5_000_000


class _Arguments(ctypes.Structure):
    """Mirrors `Arguments` in native/ways.hpp."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("replicas", "nodes", "edges", "states", "graphs")),
        *((name, ctypes.c_void_p) for name in ("source", "target", "graph", "node", "edge", "appearance", "start")),
        *((name, ctypes.c_void_p) for name in ("messages", "totals", "residual", "sweeps")),
        *((name, ctypes.c_int64) for name in ("appearance_replicas", "max_sweeps", "best", "threads")),
        *((name, ctypes.c_double) for name in ("damping", "tolerance")),
        ("stuck", ctypes.c_int64),
    ]


def unfit(problem: Problem) -> str | None:
    """Why the kernel cannot take this problem, or None."""
    if problem.node.device.type != "cpu":
        return f"the field is on {problem.node.device}; move it to the CPU, or use another backend"
    if problem.node.dtype not in FUNCTIONS:
        return f"it takes float32 and float64, not {problem.node.dtype}; convert the field"
    if problem.node.shape[-1] > MAX_STATES:
        return f"it takes up to {MAX_STATES} states, not {problem.node.shape[-1]}; use backend 'reference'"
    if max(problem.edge.shape[-3], problem.node.shape[-2], problem.num_graphs) > MAX_EDGES:
        return f"it takes up to {MAX_EDGES} nodes, edges and graphs; use backend 'reference'"
    row = 4 * -(-problem.node.shape[-1] // 16) * 16 * problem.node.element_size()
    if problem.node.shape[-2] * row > MAX_TOTALS:
        return f"it takes up to {MAX_TOTALS // row} nodes of {problem.node.shape[-1]} states; use backend 'reference'"
    return None


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why the compiled kernel is not available on this machine, or None. Compiles it at the first call."""
    try:
        load_library()
    except BuildError as error:
        log.warning("propagate: the fast CPU kernel is not available, so the slower reference is used: %s.", error)
        return str(error)
    return None


def needed_bytes(problem: Problem) -> int:
    """Memory that `solve` takes on top of the problem: the messages it returns, and its own tables, messages and
    totals.

    This holds for fields without forbidden pairs and with tables of moderate span. Others take up to three times as
    much with few states, and little more with many. Graphs and replicas are solved one after the other.
    """
    replicas, num_nodes, states = problem.node.shape
    num_edges, each = problem.edge.shape[-3], problem.node.element_size()
    if not num_edges:
        return 0
    one_graph = problem.num_graphs == 1
    largest = num_edges if one_graph else int(torch.bincount(problem.edge_graph).max())
    table, message = states**2, 2 * max(states - 1, 1)
    if states == 2:
        table, message = 1, 4  # with biases
    elif states <= MAX_REDUCED and largest >= LARGE_GRAPH:
        table = (states - 1) ** 2
    padded = 1 if states == 2 else 1 << (states - 1).bit_length() if states <= 8 else -(-states // 16) * 16
    message += int(problem.appearance.shape[0] > 1)
    totals = 3 * num_nodes * padded * each
    empty = LANES - 1 if states > MAX_REDUCED else 0  # lanes of the last block: with few states they do not matter
    returned = replicas * 2 * num_edges * states * each
    beliefs = replicas * num_nodes * states * each
    numbered = 3 * 4 * num_edges  # edge, source and target in 32 bits
    # While edges are sorted there is a list of records, and the order of several graphs, but there are no tables yet.
    planning = numbered + 3 * 4 * largest + 4 * num_edges * (not one_graph)
    own = table * each * (num_edges + empty) + totals
    if one_graph:
        # Tables and totals are freed before the last replica's messages are written.
        most = beliefs + returned + max(own - returned // replicas, 0)
        return int(max(planning, numbered + message * each * num_edges + most))
    # Each thread works on its own graph, unless a graph is so large that all threads share it.
    threads = torch.get_num_threads()
    graphs = 1 if 4 * threads * largest > num_edges * replicas else threads
    whole = own + message * each * num_edges
    held = min(whole, whole * graphs * (largest + empty) // (num_edges + empty))
    return int(max(planning, numbered + held + beliefs + returned))


@eager
def solve(problem: Problem) -> Solution:
    """Sweep until all graphs of all replicas have converged, as the reference does."""
    reason = unfit(problem) or problem.no_gradient
    if reason is None and unavailable() is not None:
        reason = f"{unavailable()}; install a C++ compiler (g++ or clang++), name it in $CXX, or use backend 'auto'"
    if reason is not None:
        raise OptionError(f"propagate: backend 'native' cannot be used here: {reason}.")
    _check_shapes(problem)
    node, edge = problem.node.detach(), problem.edge.detach()
    replicas, num_nodes, states = node.shape
    num_edges = edge.shape[-3]
    messages = node.new_empty(replicas, 2 * num_edges, states)
    totals = node.clone(memory_format=torch.contiguous_format)
    residual = node.new_zeros(replicas, problem.num_graphs)
    sweeps = torch.zeros_like(residual, dtype=torch.long)
    appearance = problem.appearance.detach()
    work = replicas * num_edges * (states + 8) ** 2 * max(problem.max_sweeps, 1)
    index = problem.arcs.edge_index.contiguous()
    # Kept until the kernel has returned, so that no tensor is freed while the kernel reads it.
    inputs = {
        "graph": problem.edge_graph.contiguous() if problem.num_graphs > 1 else None,
        "node": node.contiguous(),
        "edge": edge.contiguous(),
        "appearance": appearance.contiguous() if problem.weighted else None,
        "start": None if problem.start is None else problem.start.detach().contiguous(),
    }
    arguments = _Arguments(
        replicas=replicas,
        nodes=num_nodes,
        edges=num_edges,
        states=states,
        graphs=problem.num_graphs,
        source=index.data_ptr(),
        target=index.data_ptr() + num_edges * index.element_size(),
        **{name: _pointer(tensor) for name, tensor in inputs.items()},
        messages=messages.data_ptr(),
        totals=totals.data_ptr(),
        residual=residual.data_ptr(),
        sweeps=sweeps.data_ptr(),
        appearance_replicas=appearance.shape[0],
        max_sweeps=problem.max_sweeps,
        best=int(problem.semiring == "max"),
        threads=1 if work < ONE_THREAD_WORK else torch.get_num_threads(),
        damping=problem.damping,
        tolerance=problem.tolerance,
        stuck=-1,
    )
    _run(getattr(load_library(), FUNCTIONS[node.dtype]), arguments)
    del inputs, index  # not earlier: the kernel reads these tensors
    if arguments.stuck >= 0:
        node_at, graph_at = (
            problem.arcs.target_of(arguments.stuck),
            int(problem.edge_graph[arguments.stuck % num_edges]),
        )
        raise InfeasibleError(
            f"propagate: no state is left for node {node_at} in graph {graph_at}: clamped labels and forbidden states "
            "or pairs contradict each other. Relax one of them."
        )
    return Solution(messages, residual, sweeps, totals)


def _run(kernel: Callable[..., int], arguments: _Arguments) -> None:
    """Call the kernel, and raise an error where it reports one."""
    status = kernel(ctypes.byref(arguments))
    if status == NO_THREADS:
        # Nothing was written yet, and results depend on the number of threads only by rounding.
        log.warning("propagate: the system refused to start %s threads, so one is used.", arguments.threads)
        arguments.threads = 1
        status = kernel(ctypes.byref(arguments))
    if status == OUT_OF_RANGE:
        raise FieldError(
            "propagate: edge_index or graph names nodes or graphs that do not exist, or an edge joins two graphs. "
            "The field's tensors were changed after it was built: build a new field."
        )
    if status != SOLVED:
        raise MemoryError(
            f"propagate: the CPU kernel ran out of memory with {arguments.edges} edges and {arguments.states} states. "
            "Free memory, or solve fewer graphs or replicas at a time."
        )


def _check_shapes(problem: Problem) -> None:
    """The kernel gets addresses without sizes, so tensors of other sizes would be read beyond their end."""
    (replicas, _, states), edges = problem.node.shape, problem.edge.shape[-3]
    appearances = problem.appearance.shape[0]
    expected: tuple[tuple[str, Tensor | None, tuple[int, ...], torch.dtype], ...] = (
        ("edge_index", problem.arcs.edge_index, (2, edges), torch.int64),
        ("edge_graph", problem.edge_graph, (edges,), torch.int64),
        ("edge", problem.edge, (replicas, edges, states, states), problem.node.dtype),
        ("appearance", problem.appearance, (replicas if appearances > 1 else 1, edges), problem.node.dtype),
        ("start", problem.start, (replicas, 2 * edges, states), problem.node.dtype),
    )
    for name, tensor, shape, dtype in expected:
        if tensor is not None and (tensor.shape != shape or tensor.dtype != dtype):
            raise FieldError(
                f"propagate: {name} has shape {list(tensor.shape)} and dtype {tensor.dtype}, but {list(shape)} and "
                f"{dtype} are needed. Build the field again."
            )


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
