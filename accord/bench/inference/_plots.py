"""Plots of `accord bench inference`."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from accord.bench.inference._peers import OURS, PEERS
from accord.bench.inference._report import format_seconds
from accord.drawing._themes import LIGHT, themed, to_png

# Accord stands out; the others differ in lightness as well as in hue.
COLOURS = {OURS: "#2f7fd3", "pgmax": "#d98e2b", "compiled": "#76b7b2", "torch": "#8a8f98", "reference": "#c9ced6"}
ORDER = (OURS, "compiled", "torch", "reference", "pgmax")


def draw_times(results: dict[str, Any]) -> bytes:
    """Time of a sweep by workload and program on a log scale; a line across each group marks the memory bound."""
    rows = results["rows"]
    peers = [name for name in ORDER if any("sweep" in row["times"].get(name, {}) for row in rows)]
    with themed(LIGHT):
        figure = Figure(figsize=(8.2, 1.25 + (0.2 + 0.145 * len(peers)) * len(rows)), layout="constrained")
        axes = figure.subplots()
        for place, row in enumerate(rows):
            _draw_group(axes, place, row, peers)
        axes.set_yticks(range(len(rows)), [_label(row["title"], row["workload"]) for row in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        axes.set_xscale("log")
        low = min(min(row["bound"], row["times"][OURS]["sweep"]) for row in rows)
        high = max(time["sweep"] for row in rows for time in row["times"].values() if "sweep" in time)
        axes.set_xlim(low / 2, high * 6)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_seconds(value)))
        axes.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
        axes.set_xlabel("time of one sweep (log scale)")
        kind, machine = results["options"]["semiring"], results["machine"]
        where = (
            machine["device"].removeprefix("cuda: ")
            if results["options"]["device"] == "cuda"
            else f"{machine['processor']}, {machine['threads']} threads"
        )
        axes.set_title(f"One sweep of {kind}-product belief propagation, float32 · {where}")
        handles: list[Any] = [Patch(color=COLOURS[name], label=PEERS[name].title) for name in peers]
        handles.append(Line2D([], [], color=LIGHT.ink, linewidth=1.6, label="memory bound"))
        figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, handlelength=1.2)
        return to_png(figure)


def _draw_group(axes: Axes, place: int, row: dict[str, Any], peers: Sequence[str]) -> None:
    height = 0.8 / len(peers)
    ours = row["times"][OURS]["sweep"]
    for number, name in enumerate(peers):
        time = row["times"].get(name, {})
        middle = place - 0.4 + height * (number + 0.5)
        if "sweep" not in time:
            text = f" {PEERS[name].title}: left out"
            axes.text(row["bound"], middle, text, va="center", fontsize=6.5, color=LIGHT.soft)
            continue
        sweep = time["sweep"]
        axes.barh(middle, sweep, height=0.9 * height, color=COLOURS[name])
        ratio = "" if name == OURS else f"  {sweep / ours:.0f}x" if sweep >= 9.95 * ours else f"  {sweep / ours:.1f}x"
        weight = "bold" if name == OURS else "normal"
        axes.text(sweep, middle, f" {format_seconds(sweep)}{ratio}", va="center", fontsize=6.5, fontweight=weight)
    axes.plot([row["bound"]] * 2, [place - 0.42, place + 0.42], color=LIGHT.ink, linewidth=1.6)


def _label(title: str, name: str) -> str:
    first, _, last = title.rpartition(", ")
    return f"{name}:  {first}\n{last}"


def draw_growth(results: dict[str, Any]) -> bytes:
    """Time of a sweep, and nanoseconds per edge, by number of edges."""
    rows = results["rows"]
    edges = [row["edges"] for row in rows]
    sweeps = [row["sweep"] for row in rows]
    bounds = [row["bound"] for row in rows]
    with themed(LIGHT):
        figure = Figure(figsize=(8.2, 3.5), layout="constrained")
        whole, each = figure.subplots(1, 2)
        scale = sweeps[-1] / edges[-1]
        line = {"color": LIGHT.soft, "linestyle": "--", "linewidth": 1.2}
        whole.plot(edges, [scale * count for count in edges], label="slope 1", **line)
        for axes, per in ((whole, [1.0] * len(edges)), (each, [1e9 / count for count in edges])):
            ours = [sweep * factor for sweep, factor in zip(sweeps, per, strict=True)]
            bound = [value * factor for value, factor in zip(bounds, per, strict=True)]
            axes.plot(edges, ours, "o-", color=COLOURS[OURS], label=f"Accord ({results['backend']})", markersize=4.5)
            axes.plot(edges, bound, "-", color=LIGHT.ink, linewidth=1.2, label="memory bound")
            axes.set_xscale("log")
            axes.set_xlabel("edges")
        whole.set_yscale("log")
        whole.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_seconds(value)))
        whole.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
        whole.set_title(f"time of one sweep, K={results['states']}: grows as edges^{results['exponent']:.2f}")
        each.set_ylim(0, 1.15e9 * max(sweep / count for sweep, count in zip(sweeps, edges, strict=True)))
        each.set_title("nanoseconds per edge")
        whole.legend(loc="upper left")
        return to_png(figure)
