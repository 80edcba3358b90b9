"""`accord bench inference`: one sweep of belief propagation, compared with other programs and the memory bound."""

import gc
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from rich.console import Console, RenderableType
from torch import Tensor

from accord._files import write_bytes, write_json, write_text
from accord.bench.inference._machine import available_bytes, describe_machine, fits_in_memory
from accord.bench.inference._peers import OURS, PEERS, Peer
from accord.bench.inference._report import format_seconds, page_markdown, render
from accord.bench.inference._timing import BenchOptions, bandwidth_at, memory_bandwidth, seconds_of, time_sweeps
from accord.bench.inference._workloads import WORKLOADS, Workload, sweep_bytes
from accord.errors import OptionError
from accord.field import PairwiseField

CHECKED_SWEEPS = 5  # beliefs are compared after this many
AGREEMENT = 1e-3  # largest difference of a log-belief that rounding explains
TORCH_VARIANTS = ("torch", "compiled", "reference")

Figures = dict[str, Any]  # what was measured of a workload, or of one program on it, as in the json file


def compare_peers(chosen: str | None, options: BenchOptions, out: Path, messages: Console) -> list[RenderableType]:
    """Measure the chosen workloads, write the results after each figure, and return what to show at the end."""
    workloads = choose_workloads(chosen, options.device)
    with options.in_force():
        results: dict[str, Any] = {
            "study": "one sweep of belief propagation, float32; seconds, bytes, bytes a second",
            "machine": describe_machine(options.device),
            "options": asdict(options),
            "finished": False,
            "memory_bandwidth": memory_bandwidth(options),
            "rows": [],
        }

        def save() -> None:
            write_json(out / "inference.json", results)

        try:
            for workload in workloads:
                messages.print(f"[bold]{workload.name}[/]  {workload.title}")
                row: Figures = {}
                results["rows"].append(row)
                measure_workload(workload, options, results["memory_bandwidth"], row, messages, save)
                _write_page(results, out)
            results["finished"] = True
        finally:
            # An interrupted run also leaves a readable table.
            results["rows"] = [row for row in results["rows"] if "ratios" in row or "skipped" in row]
            save()
            _write_page(results, out)
    return render(results)


def choose_workloads(chosen: str | None, device: str) -> list[Workload]:
    """Workloads by their letters, `a,c` or `ac`; None for those that suit the device."""
    if chosen is None:
        return [workload for workload in WORKLOADS.values() if device == "cuda" or not workload.cuda_only]
    names = list(dict.fromkeys(chosen.replace(",", "").replace(" ", "")))
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown or not names:
        raise OptionError(
            f"bench: --workload {chosen!r} cannot be read. Give letters of {','.join(WORKLOADS)}, as a,c."
        )
    return [WORKLOADS[name] for name in names]


def measure_workload(
    workload: Workload,
    options: BenchOptions,
    from_memory: float,
    row: Figures,
    messages: Console,
    save: Callable[[], None],
) -> None:
    """Fill in a row: the time of each program, whether its beliefs agree, bounds and ratios.

    Args:
        workload: the field to solve.
        options: how figures are taken.
        from_memory: copy bandwidth of main memory.
        row: filled in figure by figure.
        messages: where progress is shown.
        save: called after each program.
    """
    row |= {"workload": workload.name, "title": workload.title, "nodes": workload.nodes, "edges": workload.edges}
    row |= {"states": workload.states, "graphs": workload.graphs}
    if not fits_in_memory(workload.needed_bytes, options.device):
        row["skipped"] = _too_large(workload.needed_bytes, options.device)
        messages.print(f"   left out: {row['skipped']}")
        return
    field = workload.make_field(options.device)
    moved = row["bytes"] = sweep_bytes(field.num_nodes, field.num_edges, field.num_states)
    bandwidth = bandwidth_at(moved, options, from_memory)
    times: dict[str, Figures] = {}
    row["times"] = times
    expected: Tensor | None = None
    for name, peer in PEERS.items():
        if name != OURS and not options.peers:
            continue
        times[name], beliefs = measure_peer(peer, field, options)
        if name == OURS:
            expected = beliefs
            # Measured twice, and the faster counts, in case another process used the machine.
            bandwidth = max(bandwidth, bandwidth_at(moved, options, from_memory))
            row["copy_bandwidth"] = bandwidth
            row["bound"], row["memory_bound"] = moved / bandwidth, moved / from_memory
        elif beliefs is not None and expected is not None:
            times[name]["difference"] = float((beliefs - expected).abs().max())
            times[name]["agrees"] = times[name]["difference"] <= AGREEMENT
        row["ratios"] = ratios_of(row)
        messages.print(f"   {peer.title:18} {_describe_time(times[name])}", soft_wrap=True)
        save()


def measure_peer(peer: Peer, field: PairwiseField, options: BenchOptions) -> tuple[Figures, Tensor | None]:
    """Times of a program on a field and its beliefs after a few sweeps, or the reason why it cannot be timed."""
    reason = peer.missing(options.device)
    needed = peer.bytes_for(field)
    if reason is None and not fits_in_memory(needed, options.device):
        reason = _too_large(needed, options.device)
    if reason is not None:
        return {"skipped": reason}, None
    try:
        return _measure(peer, field, options)
    except Exception as error:
        if peer.name == OURS:
            raise
        # A failure of another program is reported, and the rest are still timed.
        lines = str(error).strip().splitlines() or [""]
        return {"skipped": f"{type(error).__name__}: {lines[0][:200]}"}, None
    finally:
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()


def _measure(peer: Peer, field: PairwiseField, options: BenchOptions) -> tuple[Figures, Tensor]:
    prepared: Any = None

    def prepare() -> None:
        nonlocal prepared
        prepared = peer.prepare(field, options.semiring)

    seconds = seconds_of(prepare, options.device)
    try:
        taken = time_sweeps(prepared.run, options.device, options.repeats, prepared.fewest, prepared.compiles)
        beliefs = prepared.beliefs(prepared.run(CHECKED_SWEEPS)).clone()
    finally:
        prepared.close()
    return {**asdict(taken), "prepare": seconds, "backend": prepared.backend}, beliefs


def ratios_of(row: Figures) -> dict[str, float]:
    """How many times longer each program takes than Accord, and Accord than the bounds."""
    sweeps = {name: time["sweep"] for name, time in row["times"].items() if "sweep" in time}
    ours = sweeps[OURS]
    ratios = {name: sweep / ours for name, sweep in sweeps.items() if name != OURS}
    variants = [ratios[name] for name in TORCH_VARIANTS if name in ratios]
    if variants:
        ratios["best_torch"] = min(variants)
    return {**ratios, "bound": ours / row["bound"], "memory_bound": ours / row["memory_bound"]}


def _too_large(needed: int, device: str) -> str:
    return f"would take about {needed / 1e9:.1f} GB, and {available_bytes(device) / 1e9:.1f} GB are free"


def _describe_time(time: Figures) -> str:
    if "skipped" in time:
        return f"[dim]left out: {time['skipped']}[/]"
    differs = "" if time.get("agrees", True) else f"  [yellow]beliefs differ by {time['difference']:.2g}[/]"
    noise = "  [dim]noisy[/]" if time["noisy"] else ""
    return f"{format_seconds(time['sweep']):>9} per sweep{noise}{differs}"


def _write_page(results: dict[str, Any], out: Path) -> None:
    from accord.bench.inference._plots import draw_times

    measured = [row for row in results["rows"] if "ratios" in row]
    write_text(out / "inference.md", page_markdown(results))
    if measured:
        write_bytes(out / "inference.png", draw_times({**results, "rows": measured}))
