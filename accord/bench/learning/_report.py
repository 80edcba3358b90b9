"""Results of `accord bench learning`: a summary in words, and a sweep as JSON, Markdown and plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accord._files import write_bytes, write_json, write_text

Sweep = Mapping[str, Sequence[Mapping[str, Any]]]


def write_sweep(folder: Path, row: Mapping[str, Any], sweep: Sweep) -> list[Path]:
    """Write learning.json, learning.md and learning.png; returns their paths."""
    paths = [folder / f"learning.{ending}" for ending in ("json", "md", "png")]
    write_json(paths[0], {"case": dict(row), "sweep": sweep})
    write_text(paths[1], sweep_table(row, sweep))
    write_bytes(paths[2], draw_growth(row, sweep))
    return paths


def describe(row: Mapping[str, Any]) -> str:
    """The measurement in words; extrapolated figures are marked as such."""
    extrapolated = ", extrapolated" if row["updates_measured"] < row["updates"] else ""
    lines = [
        f"{row['benchmark']}, {row['encoder']}, {row['replicas']} replicas, {row['precision']} on {row['device_name']}",
        f"{row['ms_an_update']:.2f} ms per update (mean of {row['updates_measured']})",
        f"{row['seconds_for_the_job']:.1f} s for {row['updates']} updates{extrapolated}",
    ]
    if row["peak_bytes"] is not None:
        lines.append(f"{row['peak_bytes'] / 2**30:.2f} GiB at the peak")
    if "ratio" in row:
        lines.append(
            f"one by one with plain PyG modules, {row['plain_precision']}: "
            f"{row['plain_ms_an_update_and_replica']:.2f} ms per update and replica, "
            f"{row['plain_seconds_for_the_job']:.1f} s for all (extrapolated from {row['plain_updates_measured']} "
            f"updates of {row['plain_replicas_measured']} replicas); {row['ratio']:.1f} times as long"
        )
    return "\n".join(lines)


def straight_line(sizes: Sequence[float], times: Sequence[float]) -> tuple[float, float]:
    """Least-squares fit of relative errors: a fixed part, at least 0, and a part that grows with size."""
    small, large = 1 / np.asarray(times), np.asarray(sizes) / np.asarray(times)
    (fixed, each), *_ = np.linalg.lstsq(np.stack([small, large], 1), np.ones(len(small)), rcond=None)
    if fixed < 0 or len(small) == 1:
        fixed, each = 0.0, large.sum() / (large**2).sum()
    return float(fixed), float(each)


def sweep_table(row: Mapping[str, Any], sweep: Sweep) -> str:
    """Markdown, one table for each way to grow; the last column is 1 where cost lies on a straight line."""
    lines = [f"# Growth of an update: {row['encoder']} on {row['benchmark']}, {row['device_name']}", ""]
    lines += ["![ms per update by replicas and by edges, with fitted lines](learning.png)", ""]
    for name, points in sweep.items():
        fixed, each = straight_line([p[name] for p in points], [p["ms"] for p in points])
        lines += [f"| {name} | ms per update | over {_line_formula(fixed, each, name)} |", "|---|---|---|"]
        lines += [f"| {p[name]} | {p['ms']:.2f} | {p['ms'] / (fixed + each * p[name]):.2f} |" for p in points]
        lines.append("")
    return "\n".join(lines)


def _line_formula(fixed: float, each: float, name: str) -> str:
    return f"{fixed:.3g} ms + {each:.3g} ms x {name}"


def draw_growth(row: Mapping[str, Any], sweep: Sweep) -> bytes:
    """Milliseconds per update by replicas and by edges on logarithmic axes, with fitted lines."""
    from matplotlib.figure import Figure  # only needed for the plot

    from accord.drawing._themes import LIGHT, themed, to_png

    with themed(LIGHT):
        figure = Figure(figsize=(8.2, 3.2))
        figure.subplots_adjust(left=0.08, right=0.985, top=0.9, bottom=0.16, wspace=0.2)
        for axes, (name, points) in zip(figure.subplots(1, len(sweep), squeeze=False)[0], sweep.items(), strict=True):
            sizes, times = [p[name] for p in points], [p["ms"] for p in points]
            fixed, each = straight_line(sizes, times)
            between = np.geomspace(sizes[0], sizes[-1])
            label = _line_formula(fixed, each, name)
            axes.plot(between, fixed + each * between, "--", color=LIGHT.soft, linewidth=1, label=label)
            axes.plot(sizes, times, "o-", color="#2f7fd3", label=f"{row['encoder']}, {row['precision']}")
            axes.set(xscale="log", yscale="log", xlabel=name, ylabel="ms per update", title=f"growth with {name}")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])  # the labels of a logarithmic axis would overlap
            axes.set_xticks([], minor=True)
            axes.legend(loc="upper left")
        return to_png(figure)
