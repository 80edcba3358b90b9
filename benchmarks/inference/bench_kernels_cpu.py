"""Time of one sweep on this CPU: reference, fused kernel, and the memory bound.

For work on the kernel alone; `accord bench inference` is the benchmark, with other programs, growth and memory. With
`--alone` this script measures processor time on one thread, for shared machines. The time of a sweep is the slope
between two numbers of sweeps, so that set-up cancels; set-up is shown separately. Every figure is the best of several
short runs.

    python benchmarks/inference/bench_kernels_cpu.py [workload ...] [--semiring max] [--no-reference] [--alone]

The memory bound is [E (4 K^2 + 16 K + 8) + 12 N K] bytes divided by the copy bandwidth at that working-set size. The
formula counts bytes read and written, so the bandwidth does too: 2 x bytes copied over the time of `Tensor.copy_`, with
as many threads as the kernel. Up to the size of the last cache that is the cache's bandwidth; column "vs DRAM bound"
uses the bandwidth of 512 MB.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from accord.bench.inference._workloads import WORKLOADS as BENCH_WORKLOADS
from accord.bench.inference._workloads import random_workload, sweep_bytes
from accord.graphs import Arcs
from accord.inference.kernels import KERNELS, Problem

WORKLOADS = {
    **BENCH_WORKLOADS,
    # e with node totals that fit the cache: the cost of scattered writes is the difference.
    "e-cached": random_workload("e-cached", "20k nodes, 5M edges", 20_000, 5_000_000, 3),
}


def make_problem(name: str, semiring: str, sweeps: int) -> Problem:
    """A workload of `accord bench inference` as the kernels take it."""
    field = WORKLOADS[name].make_field("cpu")
    return Problem(
        arcs=Arcs.along(field.edge_index),
        node=field.node[None],
        edge=field.edge[None],
        appearance=torch.ones(1, field.num_edges),
        weighted=False,
        node_graph=field.graph,
        edge_graph=field.graph[field.edge_index[0]],
        num_graphs=field.num_graphs,
        semiring=semiring,
        damping=0.0,
        max_sweeps=sweeps,
        tolerance=0.0,
        start=None,
    )


clock = time.perf_counter


def best_time(run: Callable[[], object], seconds: float = 1.5, least: int = 3) -> float:
    """Fastest of many runs."""
    best, begun, runs = float("inf"), time.perf_counter(), 0
    while runs < least or time.perf_counter() - begun < seconds:
        start = clock()
        run()
        best, runs = min(best, clock() - start), runs + 1
    return best


def sweep_time(backend: str, problem: Problem, few: int, many: int, seconds: float) -> tuple[float, float]:
    """Seconds of one sweep, and of everything else."""

    def run(sweeps: int) -> Callable[[], object]:
        changed = replace(problem, max_sweeps=sweeps)
        return lambda: KERNELS[backend](changed)

    short, long = best_time(run(few), seconds, 2), best_time(run(many), seconds, 2)
    slope = (long - short) / (many - few)
    return slope, short - few * slope


def copy_bandwidth(working_set: int) -> float:
    """Bytes per second, read and written, of a copy whose two sides together are the working set."""
    one = torch.ones(working_set // 8)
    other = torch.empty_like(one)
    return 8 * len(one) / best_time(lambda: other.copy_(one), 1.0, 20)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workloads", nargs="*", default=list("abcdef"))
    parser.add_argument("--semiring", default="sum")
    parser.add_argument("--no-reference", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--alone", action="store_true", help="one thread, processor time: for shared machines")
    options = parser.parse_args()
    global clock
    if options.alone:
        torch.set_num_threads(1)
        clock = time.process_time
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, load {os.getloadavg()[0]:.1f}")
    print("workload         reference ms   native ms   bound ms   vs reference   vs bound   vs DRAM bound   set-up ms")
    memory = copy_bandwidth(2**29)
    for name in options.workloads:
        problem = make_problem(name, options.semiring, 1)
        moved = sweep_bytes(WORKLOADS[name].nodes, WORKLOADS[name].edges, WORKLOADS[name].states)
        many = 42 if moved < 2**28 else 102  # otherwise noisy set-up would dominate
        bandwidth = copy_bandwidth(moved)
        native, setup = sweep_time("native", problem, 2, many, options.seconds)
        bound = moved / max(bandwidth, copy_bandwidth(moved))
        reference = float("nan")
        if not options.no_reference:
            reference, _ = sweep_time("reference", problem, 1, 3, options.seconds)
        slow = moved / memory
        print(
            f"{name:8} {options.semiring:3} {reference * 1e3:14.2f} {native * 1e3:11.3f} {bound * 1e3:10.3f} "
            f"{reference / native:13.1f}x {native / bound:9.2f}x {native / slow:14.2f}x {setup * 1e3:11.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
