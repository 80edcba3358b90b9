"""Partitioned belief propagation: speed beside threads, bytes sent, memory, and 10^8 edges. Linux only.

    python benchmarks/distributed/propagation.py             # speed and memory: 1, 2 and 4 processes of one thread
    python benchmarks/distributed/propagation.py --huge      # 10^8 edges on 4 processes, within 20 GiB
    python benchmarks/distributed/propagation.py --gpu       # 1, 2 and 4 processes that share one GPU
    python benchmarks/distributed/propagation.py --redraw    # the page of the stored figures

Each command replaces its own figures in results/distributed/propagation.json, and writes the page beside it.
"""

import argparse
import json
import os
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import memory
import shared_gpu
import speed
import torch

from accord._files import write_json, write_text
from accord.bench.inference._machine import processor_name

FOLDER = Path(__file__).parents[2] / "results" / "distributed"
Row = dict[str, Any]


def machine() -> Row:
    """The machine and its load before the run."""
    facts = {"processor": processor_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    return {**facts, "torch": torch.__version__, "date": date.today().isoformat()}


def measure_speed(edges: int, rounds: int) -> Row:
    """All graphs and numbers of states."""
    found: Row = {"machine": machine(), "rounds": rounds, "rows": []}
    with TemporaryDirectory() as folder:
        for graph, states in speed.CASES:
            found["rows"] += speed.compare(graph, edges, states, rounds, Path(folder))
            print(found["rows"][-1], flush=True)
    return found


def measure_memory(share: float) -> Row:
    """Fits for each number of states; `share` makes all sizes smaller."""
    found: Row = {"machine": machine(), "fits": []}
    for states, sizes in memory.NODES.items():
        found["fits"].append(memory.fit(states, tuple(int(share * size) for size in sizes)))
        print({name: value for name, value in found["fits"][-1].items() if name != "rows"}, flush=True)
    return found


def measure_gpu(edges: int) -> Row:
    """All graphs, with parts on one GPU."""
    found: Row = {"machine": {**machine(), "gpu": torch.cuda.get_device_name()}, "rows": []}
    with TemporaryDirectory() as folder:
        for graph, states in shared_gpu.CASES:
            found["rows"] += shared_gpu.compare(graph, edges, states, Path(folder))
            print(found["rows"][-1], flush=True)
    return found


def page(stored: Row) -> str:
    """The figures as Markdown."""
    lines = [
        "# Partitioned propagation",
        "",
        "Written by `benchmarks/distributed/propagation.py`. Every process has one thread; values are float32.",
        "",
    ]
    if "speed" in stored:
        lines += _speed(stored["speed"])
    if "memory" in stored:
        lines += _memory(stored["memory"])
    if "huge" in stored:
        lines += _huge(stored["huge"])
    if "gpu" in stored:
        lines += _gpu(stored["gpu"])
    return "\n".join(lines)


def _on(facts: Row) -> str:
    return f"{facts['processor']}, {facts['cores']} cores, load {facts['load']:.1f} before, {facts['date']}."


def _speed(found: Row) -> list[str]:
    lines = [
        "## Speed",
        "",
        f"{_on(found['machine'])} Parts by METIS. A sweep is the slope between runs of {speed.FEW} and {speed.MANY} "
        f"sweeps, each the best of {found['rounds']} rounds in which all ways take turns. The ratio is that of sweeps "
        "a second of processes to those of one process with as many threads. With more processes than cores, both "
        "share them.",
        "",
        "Bytes are those really sent by all processes in a sweep, without 8 bytes of each process that decide on "
        "convergence. The bound sends K numbers of each node once to each other process that owns a neighbour of it. "
        "Beliefs are those of one process; the last column is their largest difference in float64 after "
        f"{speed.CHECKED} sweeps.",
        "",
        "| graph | edges | K | processes | sweeps/s | threads: sweeps/s | ratio | bytes a sweep | to the bound "
        "| difference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        bound = f"{row['bytes_sweep'] / row['bytes_bound']:.3f}" if row["bytes_bound"] else "-"
        lines.append(
            f"| {row['graph']} | {row['edges']:,} | {row['states']} | {row['count']} | "
            f"{1 / row['seconds_processes']:.1f} | {1 / row['seconds_threads']:.1f} | "
            f"{row['seconds_threads'] / row['seconds_processes']:.2f} | {row['bytes_sweep']:,.0f} | "
            f"{bound} | {row['difference']:.1e} |"
        )
    return [*lines, ""]


def _memory(found: Row) -> list[str]:
    lines = [
        "## Memory and time for the calculator",
        "",
        f"{_on(found['machine'])} Peak growth of processes that hold parts of lattices and propagate on them, with 1 "
        "and 4 edges a node and two sizes each, by least squares of relative errors: two processes, edges and nodes "
        f"as held. Seconds are the median of {memory.SWEEPS} sweeps with 4 edges a node, whose neighbours are near in "
        "memory; both processes run at once.",
        "",
        "| K | bytes an edge | bytes a node | worst error of the fit | ns an edge a sweep |",
        "|---|---|---|---|---|",
    ]
    for row in found["fits"]:
        lines.append(
            f"| {row['states']} | {row['bytes_edge']:.0f} | {row['bytes_node']:.0f} | {row['worst_error']:.1%} | "
            f"{1e9 * row['seconds_edge_sweep']:.2f} |"
        )
    return [*lines, ""]


def _huge(found: Row) -> list[str]:
    lines = [
        "## One huge grid",
        "",
        f"{_on(found['machine'])} Every process makes its part by arithmetic; none ever holds the whole graph. Every "
        "edge has its own table. Memory is the sum of the peak resident sets of all processes, which counts libraries "
        f"that they share once for each. A sweep is the median of {memory.SWEEPS}.",
        "",
        "| edges | K | processes | GiB, all | GiB, largest process | GiB before | s making | s set-up | s a sweep "
        "| s results | bytes sent a sweep |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        largest = max(process["peak"] for process in row["processes"])
        lines.append(
            f"| {row['edges']:,} | {row['states']} | {row['ranks']} | {row['total_peak'] / 2**30:.2f} | "
            f"{largest / 2**30:.2f} | {row['base'] / 2**30:.2f} | {row['seconds_making']:.1f} | "
            f"{row['seconds_setup']:.1f} | {row['seconds_sweep']:.3f} | {row['seconds_results']:.1f} | "
            f"{row['bytes_sent']:,} |"
        )
    return [*lines, ""]


def _gpu(found: Row) -> list[str]:
    lines = [
        "## Processes that share a GPU",
        "",
        f"{found['machine']['gpu']}, {found['machine']['date']}. Every part lies on the same GPU; totals go by gloo, "
        "through the memory of the host. Parts are runs of nodes on the grid, and dealt out by hash elsewhere. The "
        f"difference is the largest of a belief from that of one process, in float64 after {speed.CHECKED} sweeps, "
        "over plain, damped and tree-reweighted sum-product and max-product. One and two processes agree within 1e-6 "
        "too, or the run ends. nccl needs a GPU for each process and was not run.",
        "",
        "| graph | edges | K | processes | difference |",
        "|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        lines.append(
            f"| {row['graph']} | {row['edges']:,} | {row['states']} | {row['count']} | {row['difference']:.1e} |"
        )
    return [*lines, ""]


def main() -> None:
    """Measure what was asked for, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--huge", action="store_true", help="one huge grid instead of speed and memory")
    parser.add_argument("--gpu", action="store_true", help="processes that share one GPU instead")
    parser.add_argument("--redraw", action="store_true")
    parser.add_argument("--edges", type=float, help="of a graph: 10^6, with --huge 10^8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--share", type=float, default=1.0, help="of the sizes at which memory is measured")
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the results")
    options = parser.parse_args()
    path = options.out / "propagation.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    if options.huge:
        before = machine()
        stored["huge"] = {"machine": before, "rows": memory.huge(int(options.edges or 10**8), 3, 4)}
    elif options.gpu:
        stored["gpu"] = measure_gpu(int(options.edges or 3 * 10**5))
    elif not options.redraw:
        stored["speed"] = measure_speed(int(options.edges or 10**6), options.rounds)
        stored["memory"] = measure_memory(options.share)
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(path, stored)
    write_text(options.out / "propagation.md", page(stored))


if __name__ == "__main__":
    main()
