"""Time of one sweep on this CPU: reference, fused kernel, and what memory alone would take.

For work on the kernel: `accord bench inference` is the benchmark, with peers, growth and memory; this one knows
processor time. Time per sweep is the slope between two numbers of sweeps, so set-up drops out and is shown on its own;
every figure is the best of several short runs, since others may use the machine, and the ratios compare figures of one
run.

    python benchmarks/bench_kernels_cpu.py [workload ...] [--semiring max] [--no-reference] [--alone]

The memory bound of the design: [E (4 K^2 + 16 K + 8) + 12 N K] bytes over the copy bandwidth at that working-set size.
The formula counts what is read and what is written, so the bandwidth does too: 2 x bytes copied over the time of
`Tensor.copy_`, with as many threads as the kernel and source and destination together as large as the formula's bytes.
Up to 32 MB that is the bandwidth of this machine's third-level cache; the last column but one has that of 512 MB.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace

import torch

from accord.graphs import Arcs
from accord.inference.kernels import KERNELS, Problem


def random_graph(nodes: int, edges: int, generator: torch.Generator) -> torch.Tensor:
    """Distinct undirected edges, uniformly drawn, in no order."""
    ends = torch.randint(0, nodes, (2, edges + edges // 8 + 64), generator=generator)
    low, high = ends.amin(0), ends.amax(0)
    key = (low * nodes + high)[low != high].unique()
    key = key[torch.randperm(len(key), generator=generator)[:edges]]
    return torch.stack([key // nodes, key % nodes])


def grid(side: int) -> torch.Tensor:
    """Edges of a square grid."""
    number = torch.arange(side * side).reshape(side, side)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
    return torch.cat([across, down], 1)


def tiny_graphs(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Graphs of 6 nodes and 7 edges: a ring with a chord."""
    ring = torch.tensor([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3]])
    index = (ring[:, None] + 6 * torch.arange(count)[:, None]).reshape(2, -1)
    return index, torch.arange(count).repeat_interleave(6)


# name: (nodes, edge_index maker, states)
WORKLOADS: dict[str, tuple[int, str, int]] = {
    "a": (20_000, "random 100000", 3),
    "b": (20_000, "random 1000000", 2),
    "c": (30_000, "tiny 5000", 7),
    "d": (40_000, "grid 200", 16),
    "e": (1_000_000, "random 5000000", 3),
    "f": (20_000, "random 100000", 40),
    "e-cached": (20_000, "random 5000000", 3),  # e but for totals that fit the cache: what it costs to scatter them
}


def make_problem(name: str, semiring: str, sweeps: int, tolerance: float = 0.0) -> Problem:
    """A random field with couplings that neither vanish nor saturate."""
    nodes, recipe, states = WORKLOADS[name]
    generator = torch.Generator().manual_seed(0)
    kind, size = recipe.split()
    graph = torch.zeros(nodes, dtype=torch.long)
    if kind == "random":
        index = random_graph(nodes, int(size), generator)
    elif kind == "grid":
        index = grid(int(size))
    else:
        index, graph = tiny_graphs(int(size))
    edges = index.shape[1]
    return Problem(
        arcs=Arcs.along(index),
        node=torch.randn(1, nodes, states, generator=generator),
        edge=0.5 * torch.randn(1, edges, states, states, generator=generator),
        appearance=torch.ones(1, edges),
        weighted=False,
        node_graph=graph,
        edge_graph=graph[index[0]],
        num_graphs=int(graph[-1]) + 1,
        semiring=semiring,
        damping=0.0,
        max_sweeps=sweeps,
        tolerance=tolerance,
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


def bytes_of_sweep(problem: Problem) -> int:
    """What a sweep must move: E (4 K^2 + 16 K + 8) + 12 N K."""
    (_, nodes, states), edges = problem.node.shape, problem.edge.shape[1]
    return int(edges * (4 * states**2 + 16 * states + 8) + 12 * nodes * states)


def copy_bandwidth(working_set: int) -> float:
    """Bytes a second, read and written together, of a copy whose two sides are the working set."""
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
    parser.add_argument("--alone", action="store_true", help="one thread, processor time: for machines that are shared")
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
        moved = bytes_of_sweep(problem)
        many = 42 if moved < 2**28 else 102  # or set-up, which is noisy too, would be most of it
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
