"""`accord bench inference --linear`: does cost grow as the number of edges and no faster, and what memory it takes."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from rich.console import Console, RenderableType

from accord._files import write_bytes, write_text
from accord.bench.inference._machine import available_bytes, describe_machine
from accord.bench.inference._peers import prepare_accord
from accord.bench.inference._report import Sheet, as_tables_of, say_machine, say_seconds, sheet_markdown
from accord.bench.inference._run import MEMORY_BYTES, SHARE, BenchOptions, bandwidth_at
from accord.bench.inference._timing import copy_bandwidth, time_sweeps
from accord.bench.inference._workloads import Workload, random_workload, sweep_bytes
from accord.errors import AccordError
from accord.inference import Semiring

EDGES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
STATES = 3
DEGREE = 10  # edges a node
MEMORY_LIMIT = 2.0  # times tables and messages
MEMORY_SWEEPS = 2  # as much memory as a thousand

NOTES = """\
Random graphs with ten edges a node, K={states}, float32, tolerance 0; time and bound are taken as by
`accord bench inference` without `--linear`.

Peak memory is that of `accord.propagate` on a field of {edges:,} edges, field, tables and indices included: the most
that was held at a time, {how}. Tables (4 K^2 bytes an edge) and messages (8 K) are {least:.2f} GB.
"""
HOW = {
    "cpu": "by resident memory of a process of its own, less what it held after solving a tiny field",
    "cuda": "by `torch.cuda.max_memory_allocated`",
}


def growth_workload(edges: int) -> Workload:
    """A random graph with so many edges."""
    return random_workload(str(edges), f"{edges // DEGREE:,} nodes, {edges:,} edges", edges // DEGREE, edges, STATES)


def measure_growth(
    options: BenchOptions, out: Path, messages: Console, sizes: tuple[int, ...] = EDGES
) -> list[RenderableType]:
    """Measure, writing what there is after each size; returns what to show at the end."""
    with options.in_force():
        results: dict[str, Any] = {
            "study": "cost of belief propagation by number of edges, float32; seconds, bytes",
            "machine": describe_machine(options.device),
            "options": asdict(options),
            "finished": False,
            "states": STATES,
            "memory_bandwidth": copy_bandwidth(MEMORY_BYTES[options.device], options.device, options.repeats),
            "rows": [],
        }
        for edges in sizes:
            row = measure_size(growth_workload(edges), options, results["memory_bandwidth"])
            results["backend"] = row["backend"]
            results["rows"].append(row)
            results["exponent"] = exponent(results["rows"])
            said = f"{say_seconds(row['sweep'])} a sweep, {row['ns_per_edge']:.2f} ns an edge"
            messages.print(f"[bold]{edges:>12,}[/] edges  {said}")
            _write(results, out)
        messages.print(f"peak memory at {sizes[-1]:,} edges")
        results["memory"] = peak_memory(growth_workload(sizes[-1]), options)
        results["finished"] = True
        _write(results, out)
    return [*as_tables_of(_sheets(results)), _say_memory(results), say_machine(results)]


def measure_size(workload: Workload, options: BenchOptions, memory_bandwidth: float) -> dict[str, Any]:
    """Time and bound of one size."""
    field = workload.make_field(options.device)
    prepared = prepare_accord(field, cast(Semiring, options.semiring))
    taken = time_sweeps(prepared.run, options.device, options.repeats)
    moved = sweep_bytes(field.num_nodes, field.num_edges, field.num_states)
    bandwidth = bandwidth_at(moved, options, memory_bandwidth)
    return {
        "nodes": field.num_nodes,
        "edges": field.num_edges,
        "backend": prepared.backend,
        **asdict(taken),
        "ns_per_edge": 1e9 * taken.sweep / field.num_edges,
        "bytes": moved,
        "copy_bandwidth": bandwidth,
        "bound": moved / bandwidth,
    }


def exponent(rows: list[dict[str, Any]]) -> float:
    """How cost grows: the slope of log time over log edges by least squares; 1 where there is one size."""
    if len(rows) < 2:
        return 1.0
    edges, sweeps = (np.log([row[name] for row in rows]) for name in ("edges", "sweep"))
    return float(np.polyfit(edges, sweeps, 1)[0])


def peak_memory(workload: Workload, options: BenchOptions) -> dict[str, Any]:
    """Most memory held while a field is made and solved, next to that of its tables and messages."""
    least = workload.edges * (4 * workload.states**2 + 8 * workload.states)
    if workload.needed_bytes > SHARE * available_bytes(options.device):
        return {"edges": workload.edges, "tables_and_messages": least, "skipped": "too little memory is free"}
    held = _held_on_gpu(workload, options) if options.device == "cuda" else _held_by_process(workload, options)
    ratio = held["peak"] / least
    return {"edges": workload.edges, "tables_and_messages": least, **held, "ratio": ratio, "met": ratio <= MEMORY_LIMIT}


def _held_on_gpu(workload: Workload, options: BenchOptions) -> dict[str, int]:
    before = torch.cuda.memory_allocated()
    field = workload.make_field("cuda")
    held = torch.cuda.memory_allocated() - before
    torch.cuda.reset_peak_memory_stats()  # drawing the graph is no part of solving it
    prepare_accord(field, cast(Semiring, options.semiring)).run(MEMORY_SWEEPS)
    return {"field": held, "peak": torch.cuda.max_memory_allocated() - before}


def _held_by_process(workload: Workload, options: BenchOptions) -> dict[str, int]:
    command = [sys.executable, "-m", "accord.bench.inference._memory", workload.name, options.semiring]
    done = subprocess.run([*command, str(torch.get_num_threads())], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AccordError(f"bench: memory could not be measured: {done.stderr.strip()[-500:]}")
    return cast(dict[str, int], json.loads(done.stdout))


def _sheets(results: dict[str, Any]) -> list[Sheet]:
    rows: list[tuple[str, str, list[tuple[str, bool | None]]]] = []
    for row in results["rows"]:
        over = f"{row['sweep'] / row['bound']:.2f}x"
        sweep = ("~" if row["noisy"] else "") + say_seconds(row["sweep"])
        said = (sweep, f"{row['ns_per_edge']:.2f}", over, say_seconds(row["setup"]))
        rows.append((f"{row['edges']:,}", "", [(text, None) for text in said]))
    return [Sheet("Time by number of edges", ["edges", "sweep", "ns an edge", "over bound", "set-up"], rows)]


def _say_memory(results: dict[str, Any]) -> str:
    memory = results.get("memory")
    if memory is None:
        return "Memory: not measured yet."
    if "skipped" in memory:
        return f"Memory at {memory['edges']:,} edges: {memory['skipped']}."
    verdict = "met" if memory["met"] else "missed"
    return (
        f"Peak memory at {memory['edges']:,} edges: {memory['peak'] / 1e9:.2f} GB, {memory['ratio']:.2f} x (tables + "
        f"messages); at most {MEMORY_LIMIT:g} x was wanted: {verdict}. "
        f"The field alone takes {memory['field'] / 1e9:.2f} GB."
    )


def _write(results: dict[str, Any], out: Path) -> None:
    from accord.bench.inference._plots import draw_growth

    write_text(out / "linear.json", json.dumps(results, indent=1) + "\n")
    write_bytes(out / "linear.png", draw_growth(results))
    edges = results["rows"][-1]["edges"]
    least = edges * (4 * STATES**2 + 8 * STATES) / 1e9
    notes = NOTES.format(states=STATES, edges=edges, how=HOW[results["options"]["device"]], least=least)
    state = "" if results["finished"] else "Not finished: these are the figures so far.\n"
    grows = f"Time grows as edges^{results['exponent']:.3f}.\n"
    tables = [sheet_markdown(sheet) for sheet in _sheets(results)]
    parts = ["# Belief propagation: cost by number of edges\n", f"{say_machine(results)}.\n", state, *tables, grows]
    write_text(out / "linear.md", "\n".join(part for part in (*parts, f"{_say_memory(results)}\n", notes) if part))
