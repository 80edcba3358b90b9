"""`accord bench inference`: one sweep of belief propagation next to its peers, and to what memory allows."""

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from rich.console import Console, RenderableType
from torch import Tensor

from accord._files import write_bytes, write_text
from accord.bench.inference._machine import available_bytes, describe_machine
from accord.bench.inference._peers import OURS, PEERS, TITLES, Peer
from accord.bench.inference._report import as_markdown, as_tables, say_seconds
from accord.bench.inference._targets import judge
from accord.bench.inference._timing import copy_bandwidth, seconds_of, time_sweeps
from accord.bench.inference._workloads import WORKLOADS, Workload, sweep_bytes
from accord.errors import OptionError
from accord.field import PairwiseField
from accord.inference import Semiring

SHARE = 0.9  # of the memory that is left may be taken
CHECKED_SWEEPS = 5  # after so many, beliefs are compared
AGREEMENT = 1e-3  # largest difference of a log-belief that rounding explains
MEMORY_BYTES = {"cpu": 2**30, "cuda": 2**32}  # a working set that no cache holds
TORCH_VARIANTS = ("torch", "compiled", "reference")

Row = dict[str, Any]


@dataclass(frozen=True)
class BenchOptions:
    """How figures are taken.

    Attributes:
        device: "cpu" or "cuda".
        semiring: "sum" or "max".
        peers: whether others are timed as well.
        repeats: every figure is the median of so many.
        threads: of the CPU, for all; None for torch's.
    """

    device: str = "cpu"
    semiring: str = "sum"
    peers: bool = True
    repeats: int = 5
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.device not in ("cpu", "cuda"):
            raise OptionError(f"bench: device {self.device!r} is unknown. Choose cpu or cuda.")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise OptionError("bench: torch sees no CUDA device here. Choose --device cpu.")
        if self.semiring not in ("sum", "max"):
            raise OptionError(f"bench: semiring {self.semiring!r} is unknown. Choose sum or max.")

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Torch with that many threads, and as before afterwards."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads or before)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def compare_peers(chosen: str | None, options: BenchOptions, out: Path, messages: Console) -> list[RenderableType]:
    """Measure the chosen workloads, writing what there is after each figure; returns what to show at the end."""
    workloads = choose_workloads(chosen, options.device)
    with options.in_force():
        results: dict[str, Any] = {
            "study": "one sweep of belief propagation, float32; seconds, bytes, bytes a second",
            "machine": describe_machine(options.device),
            "options": asdict(options),
            "finished": False,
            "memory_bandwidth": copy_bandwidth(MEMORY_BYTES[options.device], options.device, options.repeats),
            "rows": [],
        }
        try:
            for workload in workloads:
                messages.print(f"[bold]{workload.name}[/]  {workload.title}")
                row: Row = {}
                results["rows"].append(row)
                measure_workload(
                    workload, options, results["memory_bandwidth"], row, messages, lambda: _save(results, out)
                )
                _show(results, out)
            results["finished"] = True
        finally:
            # Also when stopped: what there is stays readable.
            results["rows"] = [row for row in results["rows"] if "ratios" in row or "skipped" in row]
            _save(results, out)
            _show(results, out)
    return as_tables(results)


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
    memory_bandwidth: float,
    row: Row,
    messages: Console,
    save: Callable[[], None],
) -> None:
    """Fill in a row: time of each peer, whether it agrees, bounds and ratios."""
    row |= {"workload": workload.name, "title": workload.title, "nodes": workload.nodes, "edges": workload.edges}
    row |= {"states": workload.states, "graphs": workload.graphs}
    if workload.needed_bytes > SHARE * available_bytes(options.device):
        row["skipped"] = _too_large(workload.needed_bytes, options.device)
        messages.print(f"   left out: {row['skipped']}")
        return
    field = workload.make_field(options.device)
    moved = row["bytes"] = sweep_bytes(field.num_nodes, field.num_edges, field.num_states)
    bandwidth = bandwidth_at(moved, options, memory_bandwidth)
    times: dict[str, Row] = {}
    row["times"] = times
    expected: Tensor | None = None
    for name, peer in PEERS.items():
        if name != OURS and not options.peers:
            continue
        times[name], beliefs = measure_peer(peer, field, options)
        if name == OURS:
            expected = beliefs
            # Once more, and the faster counts, in case that others used the machine.
            bandwidth = max(bandwidth, bandwidth_at(moved, options, memory_bandwidth))
            row["copy_bandwidth"] = bandwidth
            row["bound"], row["memory_bound"] = moved / bandwidth, moved / memory_bandwidth
        elif beliefs is not None and expected is not None:
            times[name]["difference"] = float((beliefs - expected).abs().max())
            times[name]["agrees"] = times[name]["difference"] <= AGREEMENT
        row["ratios"] = ratios_of(row)
        row["targets"] = judge(row, options.device, options.semiring)
        messages.print(f"   {TITLES[name]:18} {_say(times[name])}", soft_wrap=True)
        save()


def measure_peer(peer: Peer, field: PairwiseField, options: BenchOptions) -> tuple[Row, Tensor | None]:
    """Time a peer on a field; its beliefs after a few sweeps. Where it cannot be timed, the reason."""
    reason = peer.missing(options.device)
    needed = peer.bytes_for(field)
    if reason is None and needed > SHARE * available_bytes(options.device):
        reason = _too_large(needed, options.device)
    if reason is not None:
        return {"skipped": reason}, None
    try:
        return _measure(peer, field, options)
    except Exception as error:
        if peer.name == OURS:
            raise
        # Somebody else's trouble: it is told, and the others are timed.
        lines = str(error).strip().splitlines() or [""]
        return {"skipped": f"{type(error).__name__}: {lines[0][:200]}"}, None
    finally:
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()


def _measure(peer: Peer, field: PairwiseField, options: BenchOptions) -> tuple[Row, Tensor]:
    prepared: Any = None

    def prepare() -> None:
        nonlocal prepared
        prepared = peer.prepare(field, cast(Semiring, options.semiring))

    seconds = seconds_of(prepare, options.device)
    try:
        taken = time_sweeps(prepared.run, options.device, options.repeats, prepared.fewest, prepared.compiles)
        beliefs = prepared.beliefs(prepared.run(CHECKED_SWEEPS)).clone()
    finally:
        prepared.close()
    return {**asdict(taken), "prepare": seconds, "backend": prepared.backend}, beliefs


def bandwidth_at(working_set: int, options: BenchOptions, memory_bandwidth: float) -> float:
    """Copy bandwidth at a size of working set."""
    bandwidth = copy_bandwidth(working_set, options.device, options.repeats)
    # No cache is slower than main memory: a copy that was had company. On GPUs it may be its launch.
    return max(bandwidth, memory_bandwidth) if options.device == "cpu" else bandwidth


def ratios_of(row: Row) -> dict[str, float]:
    """How many times longer each peer takes than Accord, and Accord than the bounds."""
    sweeps = {name: time["sweep"] for name, time in row["times"].items() if "sweep" in time}
    ours = sweeps[OURS]
    ratios = {name: sweep / ours for name, sweep in sweeps.items() if name != OURS}
    variants = [ratios[name] for name in TORCH_VARIANTS if name in ratios]
    if variants:
        ratios["best_torch"] = min(variants)
    return {**ratios, "bound": ours / row["bound"], "memory_bound": ours / row["memory_bound"]}


def _too_large(needed: int, device: str) -> str:
    return f"would take about {needed / 1e9:.1f} GB, and {available_bytes(device) / 1e9:.1f} GB are free"


def _say(time: Row) -> str:
    if "skipped" in time:
        return f"[dim]left out: {time['skipped']}[/]"
    doubt = "" if time.get("agrees", True) else f"  [yellow]beliefs differ by {time['difference']:.2g}[/]"
    noise = "  [dim]noisy[/]" if time["noisy"] else ""
    return f"{say_seconds(time['sweep']):>9} a sweep{noise}{doubt}"


def _save(results: dict[str, Any], out: Path) -> None:
    write_text(out / "inference.json", json.dumps(results, indent=1) + "\n")


def _show(results: dict[str, Any], out: Path) -> None:
    from accord.bench.inference._plots import draw_times

    shown: Sequence[Row] = [row for row in results["rows"] if "ratios" in row]
    write_text(out / "inference.md", as_markdown(results))
    if shown:
        write_bytes(out / "inference.png", draw_times({**results, "rows": shown}))
