"""Learning curves and the reliability diagram."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from accord.drawing._themes import LIGHT, PART_COLOURS, Theme, themed, to_png
from accord.evaluation import CALIBRATION_BINS, EDGE, NODE
from accord.learning import HistoryRow

CURVE_STYLES = {  # title and colour, by the name of a network in metrics.csv
    "node": ("node network", "#2f7fd3"),
    "edge": ("edge network", "#d98e2b"),
    "consistency": ("consistency", "#59a14f"),
    "field": ("whole field", "#9b59b6"),
    "label": ("label network", "#d98e2b"),
    "shared": ("shared network", "#2f7fd3"),
}


def draw_curves(rows: Sequence[HistoryRow], theme: Theme = LIGHT) -> bytes:
    """A picture of training losses and validation scores by epoch, as a PNG."""
    with themed(theme):
        figure = Figure(figsize=(8.2, 2.9))
        figure.subplots_adjust(left=0.055, right=0.985, top=0.9, bottom=0.165, wspace=0.17)
        loss, score = figure.subplots(1, 2)
        _draw_lines(loss, rows, "_loss")
        _draw_lines(score, rows, "_score")
        loss.set(title="training loss", xlabel="epoch")
        score.set(title="validation score", xlabel="epoch")
        score.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        for axes in (loss, score):
            axes.margins(x=0.01)
            if axes.get_lines():
                axes.legend(loc="best")
        return to_png(figure)


def _draw_lines(axes: Axes, rows: Sequence[HistoryRow], ending: str) -> None:
    names = dict.fromkeys(key for row in rows for key in row if key.endswith(ending))
    for name in names:
        title, colour = CURVE_STYLES.get(name.removesuffix(ending), (name, "#777777"))
        points = [(row["epoch"], row[name]) for row in rows if np.isfinite(row.get(name, np.nan))]
        if not points:
            continue
        epochs, values = zip(*points, strict=True)
        axes.plot(epochs, values, color=colour, label=title, linewidth=1.6)
        if ending == "_score":
            best = int(np.argmax(values))
            # A dot marks the parameters that were kept.
            axes.plot(epochs[best], values[best], "o", color=colour, markersize=5)


def draw_reliability(bins: Mapping[str, Mapping[str, Any]], titles: Mapping[str, str], theme: Theme = LIGHT) -> bytes:
    """A reliability diagram, as a PNG: accuracy by confidence, and how many nodes have which confidence.

    Args:
        bins: part of a model -> its `Reliability` as a dictionary.
        titles: part -> title.
        theme: colours of the page.
    """
    shown = [name for name in bins if name != EDGE]  # sums of edge tables at a node are not marginals of a model
    with themed(theme):
        figure = Figure(figsize=(8.2, 3.4))
        figure.subplots_adjust(left=0.08, right=0.97, top=0.91, bottom=0.145, wspace=0.25)
        diagram, counts = figure.subplots(1, 2, width_ratios=(1, 1.25))
        diagram.plot([0, 1], [0, 1], color=theme.soft, linewidth=1, linestyle="--")
        diagram.set(title="accuracy by confidence", xlabel="confidence", ylabel="accuracy", aspect="equal")
        width = 0.8 / CALIBRATION_BINS / max(len(shown), 1)
        middles = (np.arange(CALIBRATION_BINS) + 0.5) / CALIBRATION_BINS
        for place, name in enumerate(shown):
            part = bins[name]
            colour, title = PART_COLOURS[name], f"{titles[name]}, {'softmax' if name == NODE else 'marginals'}"
            diagram.plot(
                part["confidence"], part["accuracy"], "o-", color=colour, label=title, markersize=4, clip_on=False
            )
            # Confidences of exactly 1 are a bin of their own, but have no bar of their own.
            bar = np.floor(np.minimum(part["confidence"], 0.999) * CALIBRATION_BINS).astype(int)
            nodes = np.bincount(bar, part["nodes"], CALIBRATION_BINS)
            counts.bar(
                middles + (place - (len(shown) - 1) / 2) * width,
                nodes / max(nodes.sum(), 1),
                width=width,
                color=colour,
                label=title,
            )
        counts.set(title="nodes by confidence", xlabel="confidence", ylabel="share of nodes", xlim=(0, 1))
        for axes in (diagram, counts):
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        diagram.set(xlim=(0, 1), ylim=(0, 1))
        counts.legend(loc="best")
        return to_png(figure)
