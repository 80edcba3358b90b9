"""Memory and time of processes that hold parts of lattices: fits for the calculator, and 10^8 edges at once."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from lattices import lattice_field, lattice_part
from processes import Processes, forget_peak, resident
from torch import Tensor

from accord._memory import available_memory
from accord.distributed import propagate
from accord.distributed.propagation._native import NativeSweeps

SWEEPS = 10
OFFSETS = {1: (1,), 4: (1, 3, 10, 100)}  # by edges of a node; with two numbers, edges and nodes can be told apart
NODES = {2: (10**6, 2 * 10**6), 3: (10**6, 2 * 10**6), 10: (200_000, 400_000)}  # by states: sizes of a fit
LIMIT = 20 * 2**30  # bytes of all processes together
HEADROOM = 1.15  # what a size may take beyond what the size before lets expect

Row = dict[str, Any]


def hold(rank: int, ranks: int, kept: dict[str, Any], nodes: int, offsets: tuple[int, ...], states: int) -> Row:
    """Make a part of a lattice, propagate on it, and measure both."""
    small = lattice_part(64, (1, 8), rank, ranks)
    propagate(small, lattice_field(small, states), max_sweeps=1, backend="native")  # kernels compiled and loaded
    before = forget_peak()
    dist.barrier()
    begun = time.perf_counter()
    part = lattice_part(nodes, offsets, rank, ranks)
    field = lattice_field(part, states)
    made, made_peak = time.perf_counter() - begun, resident()
    forget_peak()
    dist.barrier()
    begun = time.perf_counter()
    with sweep_clock() as ends:
        found = propagate(part, field, max_sweeps=SWEEPS, tolerance=0.0, backend="native")
    ended, peak = time.perf_counter(), resident()
    assert found.node.exp()[: part.num_own].sum(-1).sub_(1).abs().max() < 1e-5  # fails for NaN as well
    sweep = float(np.median(np.diff(ends)))
    return {
        "nodes": len(part.nodes),
        "edges": part.edge_index.shape[1],
        "before": before,
        "peak": max(made_peak, peak),
        "peak_making": made_peak,
        "peak_propagating": peak,
        "seconds_making": made,
        "seconds_setup": ends[0] - begun - sweep,
        "seconds_sweep": sweep,
        "seconds_results": ended - ends[-1],
        "bytes_sent": found.bytes_sent,
    }


@contextmanager
def sweep_clock() -> Iterator[list[float]]:
    """The times at which the sweeps of this process end, exchange and work included."""
    ends: list[float] = []
    outer = NativeSweeps.outer

    def timed(engine: NativeSweeps, ghosts: Tensor, exact: bool) -> float:
        moved = outer(engine, ghosts, exact)
        ends.append(time.perf_counter())
        return moved

    NativeSweeps.outer = timed
    try:
        yield ends
    finally:
        NativeSweeps.outer = outer


def fit(states: int, sizes: tuple[int, ...], ranks: int = 2) -> Row:
    """Bytes of an edge and of a node, by least squares on the growth of processes that hold parts."""
    rows = []
    for offsets in OFFSETS.values():
        for nodes in sizes:
            with Processes(ranks) as processes:  # new ones: memory that was used once is not measured again
                rows += processes.run(hold, nodes * ranks, offsets, states)
    # How a part is made is the affair of the benchmark: parts of users come from elsewhere.
    grown = np.array([row["peak_propagating"] - row["before"] for row in rows], dtype=float)
    known = np.array([(row["edges"], row["nodes"]) for row in rows], dtype=float)
    # Relative errors count, or the largest part alone would decide.
    (edge, node), *_ = np.linalg.lstsq(known / grown[:, None], np.ones(len(grown)), rcond=None)
    many = [row["seconds_sweep"] / row["edges"] for row in rows if row["edges"] > 2 * row["nodes"]]
    return {
        "states": states,
        "bytes_edge": float(edge),
        "bytes_node": float(node),
        "worst_error": float(np.abs(known @ (edge, node) / grown - 1).max()),
        "seconds_edge_sweep": float(np.median(many)),
        "rows": rows,
    }


def huge(edges: int, states: int, ranks: int) -> list[Row]:
    """Grids of a hundredth of the edges, of a tenth, and of all; stops before one that would not fit into memory."""
    found: list[Row] = []
    for size in (edges // 100, edges // 10, edges):
        width = math.isqrt(size // 2)
        nodes = size // 2
        if found:
            last = found[-1]
            expected = HEADROOM * (last["base"] + (last["total_peak"] - last["base"]) * nodes / last["nodes"])
            room = min(LIMIT, available_memory(torch.device("cpu")) or LIMIT)
            if expected > room:
                raise MemoryError(
                    f"{size} edges would take {expected / 2**30:.1f} GiB, of which {room / 2**30:.1f} may be used. "
                    "Give fewer by --edges."
                )
        with Processes(ranks) as processes:
            rows = processes.run(hold, nodes, (1, width), states)
        found.append(
            {
                "nodes": nodes,
                "edges": 2 * nodes,
                "states": states,
                "ranks": ranks,
                "base": sum(row["before"] for row in rows),
                "total_peak": sum(row["peak"] for row in rows),
                "seconds_making": max(row["seconds_making"] for row in rows),
                "seconds_setup": max(row["seconds_setup"] for row in rows),
                "seconds_sweep": max(row["seconds_sweep"] for row in rows),
                "seconds_results": max(row["seconds_results"] for row in rows),
                "bytes_sent": sum(row["bytes_sent"] for row in rows),
                "processes": rows,
            }
        )
        print({name: value for name, value in found[-1].items() if name != "processes"}, flush=True)
    return found
