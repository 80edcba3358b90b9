"""What `accord bench learning --sweep` leaves: figures as JSON and Markdown, and growth as a picture."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accord._files import write_text

Sweep = Mapping[str, Sequence[Mapping[str, Any]]]


def write_sweep(folder: Path, row: Mapping[str, Any], sweep: Sweep) -> list[Path]:
    """Write learning.json, learning.md and learning.png; says where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"learning.{ending}" for ending in ("json", "md", "png")]
    write_text(paths[0], json.dumps({"case": dict(row), "sweep": sweep}, indent=1) + "\n")
    write_text(paths[1], sweep_table(row, sweep))
    paths[2].write_bytes(draw_growth(row, sweep))
    return paths


def straight_line(sizes: Sequence[float], times: Sequence[float]) -> tuple[float, float]:
    """What comes nearest to the times, in proportion: a fixed part, not below 0, and one that grows with size."""
    small, large = 1 / np.asarray(times), np.asarray(sizes) / np.asarray(times)
    (fixed, each), *_ = np.linalg.lstsq(np.stack([small, large], 1), np.ones(len(small)), rcond=None)
    if fixed < 0 or len(small) == 1:
        fixed, each = 0.0, large.sum() / (large**2).sum()
    return float(fixed), float(each)


def sweep_table(row: Mapping[str, Any], sweep: Sweep) -> str:
    """Markdown: one table for each way to grow; the last column is 1 where cost lies on a straight line."""
    lines = [f"# Growth of an update: {row['encoder']} on {row['benchmark']}, {row['device_name']}", ""]
    lines += ["![ms an update by replicas and by edges, beside straight lines](learning.png)", ""]
    for name, points in sweep.items():
        fixed, each = straight_line([p[name] for p in points], [p["ms"] for p in points])
        lines += [f"| {name} | ms an update | over {_say_line(fixed, each, name)} |", "|---|---|---|"]
        lines += [f"| {p[name]} | {p['ms']:.2f} | {p['ms'] / (fixed + each * p[name]):.2f} |" for p in points]
        lines.append("")
    return "\n".join(lines)


def _say_line(fixed: float, each: float, name: str) -> str:
    return f"{fixed:.3g} ms + {each:.3g} ms x {name}"


def draw_growth(row: Mapping[str, Any], sweep: Sweep) -> bytes:
    """Milliseconds an update by replicas and by edges, both axes logarithmic, beside straight lines."""
    from matplotlib.figure import Figure  # not needed for plain figures

    from accord.drawing._themes import LIGHT, themed, to_png

    with themed(LIGHT):
        figure = Figure(figsize=(8.2, 3.2))
        figure.subplots_adjust(left=0.08, right=0.985, top=0.9, bottom=0.16, wspace=0.2)
        for axes, (name, points) in zip(figure.subplots(1, len(sweep), squeeze=False)[0], sweep.items(), strict=True):
            sizes, times = [p[name] for p in points], [p["ms"] for p in points]
            fixed, each = straight_line(sizes, times)
            between = np.geomspace(sizes[0], sizes[-1])
            label = _say_line(fixed, each, name)
            axes.plot(between, fixed + each * between, "--", color=LIGHT.soft, linewidth=1, label=label)
            axes.plot(sizes, times, "o-", color="#2f7fd3", label=f"{row['encoder']}, {row['precision']}")
            axes.set(xscale="log", yscale="log", xlabel=name, ylabel="ms an update", title=f"growth with {name}")
            axes.set_xticks(sizes, [f"{size:,}" for size in sizes])  # a logarithmic axis would write over itself
            axes.set_xticks([], minor=True)
            axes.legend(loc="upper left")
        return to_png(figure)
