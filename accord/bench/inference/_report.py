"""Figures of `accord bench inference` as tables, for the terminal and as Markdown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from accord.bench.inference._peers import OURS, TITLES

Row = dict[str, Any]
RATIOS = {
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
divided by their number: the median of {repeats} pairs, with a ~ where these lie further apart than half of it. Set-up
is everything else: preparing (copies, building a factor graph, compiling) and what a call takes beside its sweeps; for
Accord, checks, layout and node beliefs.

Everybody gets the same potentials and starts from messages that say nothing; beliefs after 5 sweeps are compared, and
whoever differs by more than 1e-3 in a log-belief is marked. Plain torch is gather, add, logsumexp (amax), index_add,
and compiled torch is `torch.compile` of that; the reference, Accord's own, also counts infinities apart and finds
residuals.

Bound: E (4 K^2 + 16 K + 8) + 12 N K bytes over the speed of `torch.Tensor.copy_` between two buffers that together
are as large, read and written bytes both counted, same number of threads, same run, the fastest of many tries before
and after Accord is timed (on CPUs never less than main memory's). Main memory bound: the same bytes at {memory:.1f}
GB/s, the copy speed of buffers that no cache holds. Ratios say how many times longer others take, and how many times
longer than the bounds Accord takes; targets are allowed 10 % for noise.
"""


@dataclass(frozen=True)
class Sheet:
    """A table before it is written.

    Attributes:
        title: what it shows.
        columns: headings, that of the names first.
        rows: name, what the name stands for, and cells, which may be good (True), bad (False) or neither (None).
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, str, Sequence[tuple[str, bool | None]]]]


def say_seconds(seconds: float) -> str:
    """Three digits and a unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= 0.9995 * size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def _digits(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 99.95 else f"{value:.3g}"


def _times(results: dict[str, Any], peers: Sequence[str]) -> Sheet:
    rows = []
    for row in results["rows"]:
        if "ratios" in row:
            cells = [_time_cell(row["times"].get(name, {})) for name in peers]
            bounds = [(say_seconds(row[name]), None) for name in ("bound", "memory_bound")]
            rows.append((row["workload"], row["title"], [*cells, *bounds]))
    columns = ["workload", *(TITLES[name] for name in peers), "bound", "main memory bound"]
    return Sheet("Time of one sweep", columns, rows)


def _time_cell(time: Row) -> tuple[str, bool | None]:
    if "sweep" not in time:
        return "-", None
    differs = not time.get("agrees", True)
    doubt = "~" if time["noisy"] else ""
    return doubt + say_seconds(time["sweep"]) + (" (differs)" if differs else ""), False if differs else None


def _ratios(results: dict[str, Any]) -> Sheet:
    rows = []
    names = [name for name in RATIOS if any(name in row.get("ratios", {}) for row in results["rows"])]
    for row in results["rows"]:
        if "ratios" not in row:
            continue
        wanted = {target["what"]: target for target in row["targets"]}
        cells = [_ratio_cell(row["ratios"].get(name), wanted.get(name)) for name in names]
        if any("sweep" in _wanted(other) for other in results["rows"]):
            target = wanted.get("sweep")
            sweep = say_seconds(target["wanted"]) if target else ""
            cells.append((f"{_mark(target)} ≤ {sweep}", target["met"]) if target else ("", None))
        rows.append((row["workload"], row["title"], cells))
    columns = ["workload", *(RATIOS[name] for name in names)]
    if rows and len(rows[0][2]) >= len(columns):
        columns.append("sweep")
    return Sheet("How many times longer: others than Accord, Accord than the bounds", columns, rows)


def _wanted(row: Row) -> set[str]:
    return {target["what"] for target in row.get("targets", [])}


def _ratio_cell(ratio: float | None, target: Row | None) -> tuple[str, bool | None]:
    if ratio is None:
        return "-", None
    said = f"{_digits(ratio)}x"
    if target is None:
        return said, None
    return f"{said} {_mark(target)} {'≥' if target['at_least'] else '≤'}{target['wanted']:.3g}", target["met"]


def _mark(target: Row | None) -> str:
    return "" if target is None else "✓" if target["met"] else "✗"


def _setups(results: dict[str, Any], peers: Sequence[str]) -> Sheet:
    rows = []
    for row in results["rows"]:
        if "ratios" in row:
            times = [row["times"].get(name, {}) for name in peers]
            # Ours prepares in every call, so that is in `setup` already; what `prepare` did was to warm up.
            parts = [
                time.get("setup", 0.0) + (0.0 if name in (OURS, "reference") else time.get("prepare", 0.0))
                for name, time in zip(peers, times, strict=True)
            ]
            cells = [
                (say_seconds(part) if "sweep" in time else "-", None) for part, time in zip(parts, times, strict=True)
            ]
            rows.append((row["workload"], row["title"], cells))
    return Sheet("Set-up", ["workload", *(TITLES[name] for name in peers)], rows)


def sheets_of(results: dict[str, Any]) -> list[Sheet]:
    """Times, ratios and set-up."""
    peers = [name for name in TITLES if any(name in row.get("times", {}) for row in results["rows"])]
    return [_times(results, peers), _ratios(results), _setups(results, peers)]


def left_out(results: dict[str, Any]) -> list[str]:
    """Who was not timed where, and why."""
    said: dict[str, list[str]] = {}
    for row in results["rows"]:
        if "skipped" in row:
            said.setdefault(f"everybody: {row['skipped']}", []).append(row["workload"])
        for name, time in row.get("times", {}).items():
            if "skipped" in time:
                said.setdefault(f"{TITLES[name]}: {time['skipped']}", []).append(row["workload"])
    return [f"Left out in {', '.join(names)}: {reason}." for reason, names in said.items()]


def as_tables(results: dict[str, Any]) -> list[RenderableType]:
    """For the terminal."""
    legend = "\n".join(f"{row['workload']}: {row['title']}" for row in results["rows"])
    return [*as_tables_of(sheets_of(results)), legend, *left_out(results), say_machine(results)]


def as_tables_of(sheets: Sequence[Sheet]) -> list[RenderableType]:
    """Coloured tables."""
    shown: list[RenderableType] = []
    for sheet in sheets:
        table = Table(title=sheet.title, title_justify="left", box=SIMPLE_HEAD)
        for place, column in enumerate(sheet.columns):
            table.add_column(column, justify="right" if place else "left")
        for name, _, cells in sheet.rows:
            table.add_row(name, *(Text(said, style=_style(good)) for said, good in cells))
        shown.append(table)
    return shown


def _style(good: bool | None) -> str:
    return "" if good is None else "green" if good else "red"


def say_machine(results: dict[str, Any]) -> str:
    """One line on where figures are from."""
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


def sheet_markdown(sheet: Sheet) -> str:
    """A Markdown table under its title."""
    lines = [f"## {sheet.title}", "", "| " + " | ".join(sheet.columns) + " |"]
    lines.append("|---|" + "---:|" * (len(sheet.columns) - 1))
    for name, meaning, cells in sheet.rows:
        first = f"{name}: {meaning}" if meaning else name
        lines.append("| " + " | ".join([first, *(said for said, _ in cells)]) + " |")
    return "\n".join(lines) + "\n"


def as_markdown(results: dict[str, Any]) -> str:
    """All of it as a page."""
    notes = NOTES.format(repeats=results["options"]["repeats"], memory=results["memory_bandwidth"] / 1e9)
    state = "" if results["finished"] else "Not finished: these are the figures so far.\n"
    parts = ["# Belief propagation: one sweep, float32\n", f"{say_machine(results)}.\n", state]
    parts += [sheet_markdown(sheet) for sheet in sheets_of(results) if sheet.rows]
    parts += ["\n".join(f"- {line}" for line in left_out(results)), notes]
    return "\n".join(part for part in parts if part)
