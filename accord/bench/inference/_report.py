"""Figures of `accord bench inference` as tables, for the terminal and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from accord.bench.inference._peers import OURS, PEERS

RATIO_TITLES = {
    "torch": "plain torch",
    "compiled": "compiled torch",
    "best_torch": "best of torch",
    "reference": "reference",
    "pgmax": "PGMax",
    "bound": "over bound",
    "memory_bound": "over main memory bound",
}
NOTES = """\
One sweep sends a message along every arc. Its time is the difference of runs with many and few sweeps at tolerance 0,
divided by the difference of their numbers: the median of {repeats} pairs, marked ~ where their range is wider than half
the median. Set-up is everything else: preparing (copies, building a factor graph, compiling) and the part of a call
outside its sweeps; for Accord these are checks, layout and node beliefs.

All programs get the same potentials and start from uniform messages. Beliefs after 5 sweeps are compared, and a program
that differs by more than 1e-3 in a log-belief is marked. Plain torch is gather, add, logsumexp (amax), index_add;
compiled torch is `torch.compile` of that. The reference is Accord's own; it also counts infinities separately and
computes residuals.

Bound: E (4 K^2 + 16 K + 8) + 12 N K bytes divided by the bandwidth of `torch.Tensor.copy_` between two buffers that
together have that size. Read and written bytes both count. The copy uses the same number of threads in the same run,
and the fastest of many tries before and after Accord's counts (on CPUs never less than main memory's). Main memory
bound: the same bytes at {memory:.1f} GB/s, the copy bandwidth of buffers that no cache holds. Ratios say how many times
longer the other programs take than Accord, and Accord than the bounds.
"""


@dataclass(frozen=True)
class Sheet:
    """A table before it is rendered.

    Attributes:
        title: what it shows.
        columns: headings; the first is that of the names.
        rows: name, meaning of the name, and cells; a cell is its text and whether it is a warning.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[tuple[str, bool]]]]


def format_seconds(seconds: float) -> str:
    """Three digits and a suitable unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= 0.9995 * size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def sheets_of(results: dict[str, Any]) -> list[Sheet]:
    """Times, ratios and set-up of the workloads that were measured."""
    measured = [row for row in results["rows"] if "ratios" in row]
    peers = [name for name in PEERS if any(name in row["times"] for row in measured)]
    return [_times(measured, peers), _ratios(measured), _setups(measured, peers)]


def _times(measured: Sequence[dict[str, Any]], peers: Sequence[str]) -> Sheet:
    rows = []
    for row in measured:
        cells = [_time_cell(row["times"].get(name, {})) for name in peers]
        bounds = [(format_seconds(row[name]), False) for name in ("bound", "memory_bound")]
        rows.append((row["workload"], row["title"], [*cells, *bounds]))
    columns = ["workload", *(PEERS[name].title for name in peers), "bound", "main memory bound"]
    return Sheet("Time of one sweep", columns, rows)


def _time_cell(time: dict[str, Any]) -> tuple[str, bool]:
    if "sweep" not in time:
        return "-", False
    differs = not time.get("agrees", True)
    noise = "~" if time["noisy"] else ""
    return noise + format_seconds(time["sweep"]) + (" (differs)" if differs else ""), differs


def _ratios(measured: Sequence[dict[str, Any]]) -> Sheet:
    names = [name for name in RATIO_TITLES if any(name in row["ratios"] for row in measured)]
    rows = []
    for row in measured:
        ratios = [row["ratios"].get(name) for name in names]
        cells = [("-" if ratio is None else f"{_digits(ratio)}x", False) for ratio in ratios]
        rows.append((row["workload"], row["title"], cells))
    columns = ["workload", *(RATIO_TITLES[name] for name in names)]
    return Sheet("How many times longer: others than Accord, Accord than the bounds", columns, rows)


def _setups(measured: Sequence[dict[str, Any]], peers: Sequence[str]) -> Sheet:
    rows = []
    for row in measured:
        cells = []
        for name in peers:
            time = row["times"].get(name, {})
            # Accord prepares in every call, so `setup` includes that already; its `prepare` only warmed up.
            prepare = 0.0 if name in (OURS, "reference") else time.get("prepare", 0.0)
            cells.append((format_seconds(time["setup"] + prepare) if "sweep" in time else "-", False))
        rows.append((row["workload"], row["title"], cells))
    return Sheet("Set-up", ["workload", *(PEERS[name].title for name in peers)], rows)


def describe_omissions(results: dict[str, Any]) -> list[str]:
    """Which programs were not timed on which workloads, and why."""
    workloads: dict[str, list[str]] = {}
    for row in results["rows"]:
        if "skipped" in row:
            workloads.setdefault(f"every program: {row['skipped']}", []).append(row["workload"])
        for name, time in row.get("times", {}).items():
            if "skipped" in time:
                workloads.setdefault(f"{PEERS[name].title}: {time['skipped']}", []).append(row["workload"])
    return [f"Left out in {', '.join(names)}: {reason}." for reason, names in workloads.items()]


def describe_machine_line(results: dict[str, Any]) -> str:
    """Hardware, versions and date in one line."""
    machine, options = results["machine"], results["options"]
    hardware = f"{machine['processor']} ({machine['instructions']}), {machine['cores']} cores"
    if options["device"] == "cuda":
        hardware = f"{machine['device'].removeprefix('cuda: ')}; {hardware}"
    names = ("torch", "triton", "jax", "pgmax")
    versions = ", ".join(f"{name} {machine[name]}" for name in names if machine.get(name))
    load = "" if machine["load_before"] is None else f", load {machine['load_before']:.1f} before"
    return (
        f"{hardware}, {machine['threads']} threads{load}; {versions}; {options['semiring']}-product, "
        f"{machine['date']}, commit {machine['commit']}"
    )


def render(results: dict[str, Any]) -> list[RenderableType]:
    """Everything that the terminal shows at the end."""
    legend = "\n".join(f"{row['workload']}: {row['title']}" for row in results["rows"])
    tables = [render_sheet(sheet) for sheet in sheets_of(results)]
    return [*tables, legend, *describe_omissions(results), describe_machine_line(results)]


def render_sheet(sheet: Sheet) -> Table:
    """A table for the terminal; warnings are red."""
    table = Table(title=sheet.title, title_justify="left", box=SIMPLE_HEAD)
    for place, column in enumerate(sheet.columns):
        table.add_column(column, justify="right" if place else "left")
    for name, _, cells in sheet.rows:
        table.add_row(name, *(Text(text, style="red" if warning else "") for text, warning in cells))
    return table


def sheet_markdown(sheet: Sheet) -> str:
    """A Markdown table under its title."""
    lines = [f"## {sheet.title}", "", "| " + " | ".join(sheet.columns) + " |"]
    lines.append("|---|" + "---:|" * (len(sheet.columns) - 1))
    for name, meaning, cells in sheet.rows:
        first = f"{name}: {meaning}" if meaning else name
        lines.append("| " + " | ".join([first, *(text for text, _ in cells)]) + " |")
    return "\n".join(lines) + "\n"


def page_markdown(results: dict[str, Any]) -> str:
    """The whole page."""
    notes = NOTES.format(repeats=results["options"]["repeats"], memory=results["memory_bandwidth"] / 1e9)
    state = "" if results["finished"] else "Not finished: these are the figures so far.\n"
    parts = ["# Belief propagation: one sweep, float32\n", f"{describe_machine_line(results)}.\n", state]
    parts += [sheet_markdown(sheet) for sheet in sheets_of(results) if sheet.rows]
    parts += ["\n".join(f"- {line}" for line in describe_omissions(results)), notes]
    return "\n".join(part for part in parts if part)
