"""`accord bench inference --linear`: how time grows with the number of edges, and how much memory a solve takes."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console, RenderableType

from accord._files import write_bytes, write_json, write_text
from accord.bench.inference._machine import describe_machine
from accord.bench.inference._peak_memory import measure_peak_memory
from accord.bench.inference._peers import prepare_accord
from accord.bench.inference._report import (
    Sheet,
    describe_machine_line,
    format_seconds,
    render_sheet,
    sheet_markdown,
)
from accord.bench.inference._timing import BenchOptions, bandwidth_at, memory_bandwidth, time_sweeps
from accord.bench.inference._workloads import GROWTH_STATES, Workload, growth_workload, sweep_bytes

EDGES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
NOTES = """\
Random graphs with ten edges per node, K={states}, float32, tolerance 0. Time and bound are measured as by
`accord bench inference` without `--linear`.

Peak memory is that of `accord.propagate` on a field of {edges:,} edges, including the field, tables and indices,
measured {how}. Tables (4 K^2 bytes per edge) and messages (8 K) take {least:.2f} GB.
"""
HOW_MEASURED = {
    "cpu": "as the resident memory of a separate process, minus what it held after solving a tiny field",
    "cuda": "by `torch.cuda.max_memory_allocated`",
}


def measure_growth(
    options: BenchOptions, out: Path, messages: Console, sizes: tuple[int, ...] = EDGES
) -> list[RenderableType]:
    """Measure every size, write the figures after each, and return what to show at the end."""
    with options.in_force():
        results: dict[str, Any] = {
            "study": "cost of belief propagation by number of edges, float32; seconds, bytes",
            "machine": describe_machine(options.device),
            "options": asdict(options),
            "finished": False,
            "states": GROWTH_STATES,
            "memory_bandwidth": memory_bandwidth(options),
            "rows": [],
        }
        for edges in sizes:
            row = measure_size(growth_workload(edges), options, results["memory_bandwidth"])
            results["backend"] = row["backend"]
            results["rows"].append(row)
            results["exponent"] = exponent(results["rows"])
            figures = f"{format_seconds(row['sweep'])} per sweep, {row['ns_per_edge']:.2f} ns per edge"
            messages.print(f"[bold]{edges:>12,}[/] edges  {figures}")
            _write(results, out)
        messages.print(f"peak memory at {sizes[-1]:,} edges")
        results["memory"] = measure_peak_memory(growth_workload(sizes[-1]), options)
        results["finished"] = True
        _write(results, out)
    return [render_sheet(_sheet(results)), _describe_memory(results), describe_machine_line(results)]


def measure_size(workload: Workload, options: BenchOptions, from_memory: float) -> dict[str, Any]:
    """Time and bound of one size."""
    field = workload.make_field(options.device)
    prepared = prepare_accord(field, options.semiring)
    taken = time_sweeps(prepared.run, options.device, options.repeats)
    moved = sweep_bytes(field.num_nodes, field.num_edges, field.num_states)
    bandwidth = bandwidth_at(moved, options, from_memory)
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
    """Slope of log time over log edges by least squares; 1 for a single size."""
    if len(rows) < 2:
        return 1.0
    edges, sweeps = (np.log([row[name] for row in rows]) for name in ("edges", "sweep"))
    return float(np.polyfit(edges, sweeps, 1)[0])


def _sheet(results: dict[str, Any]) -> Sheet:
    rows = []
    for row in results["rows"]:
        sweep = ("~" if row["noisy"] else "") + format_seconds(row["sweep"])
        over = f"{row['sweep'] / row['bound']:.2f}x"
        cells = (sweep, f"{row['ns_per_edge']:.2f}", over, format_seconds(row["setup"]))
        rows.append((f"{row['edges']:,}", "", [(text, False) for text in cells]))
    return Sheet("Time by number of edges", ["edges", "sweep", "ns per edge", "over bound", "set-up"], rows)


def _describe_memory(results: dict[str, Any]) -> str:
    memory = results.get("memory")
    if memory is None:
        return "Memory: not measured yet."
    if "skipped" in memory:
        return f"Memory at {memory['edges']:,} edges: {memory['skipped']}."
    return (
        f"Peak memory at {memory['edges']:,} edges: {memory['peak'] / 1e9:.2f} GB, {memory['ratio']:.2f} x (tables + "
        f"messages). The field alone takes {memory['field'] / 1e9:.2f} GB."
    )


def _write(results: dict[str, Any], out: Path) -> None:
    from accord.bench.inference._plots import draw_growth

    write_json(out / "linear.json", results)
    write_bytes(out / "linear.png", draw_growth(results))
    edges = results["rows"][-1]["edges"]
    least = growth_workload(edges).table_and_message_bytes / 1e9
    how = HOW_MEASURED[results["options"]["device"]]
    notes = NOTES.format(states=GROWTH_STATES, edges=edges, how=how, least=least)
    state = "" if results["finished"] else "Not finished: these are the figures so far.\n"
    grows = f"Time grows as edges^{results['exponent']:.3f}.\n"
    parts = ["# Belief propagation: cost by number of edges\n", f"{describe_machine_line(results)}.\n", state]
    parts += [sheet_markdown(_sheet(results)), grows, f"{_describe_memory(results)}\n", notes]
    write_text(out / "linear.md", "\n".join(part for part in parts if part))
