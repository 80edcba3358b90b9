"""The paper's figures redrawn from records, for light and dark pages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from accord.drawing import Theme, draw_case, themed, to_png
from accord.evaluation import Case
from accord.experiments._convergence import CURVE_COLOURS, CURVE_TITLES
from accord.experiments.reproduction._ablation import NORMALISERS, SHARPNESS
from accord.experiments.reproduction._cells import (
    ABLATED_ENCODERS,
    BACKBONE_ENCODERS,
    BACKBONES,
    CASE,
    CONVERGENCE,
    HEAD_COUNTS,
    HEADS,
    PARTS,
    TRAINING,
    WIDTHS,
    Cell,
    Source,
)
from accord.experiments.reproduction._results import Results
from accord.experiments.reproduction.report._summaries import NAMES, ablated, ablated_measure, ablation_tables

LINES = ("#e5322d", "#2f7fd3", "#4e9ad9", "#59a14f", "#8a8f98", "#d98e2b")  # by normaliser
PART_TITLES = {"gnn": "node network", "edge": "edge network", "spn": "SPN"}


@dataclass(frozen=True)
class Picture:
    """A figure: the name of its file, what it shows, and how it is drawn as a PNG in a theme."""

    name: str
    text: str
    draw: Callable[[Theme], bytes]


def pictures(results: Results) -> list[Picture]:
    """Every figure that has records, not drawn yet."""
    return [picture for find in (_convergence, _cases, _heads, _sharpness) for picture in find(results)]


def _convergence(results: Results) -> list[Picture]:
    """Figure 2: each set of curves of three starts."""
    drawn = []
    for cell in sorted(cell for cell in results.by_cell if cell.experiment == CONVERGENCE):
        runs = [details for details in results.details(cell).values() if isinstance(details, dict)]
        text = f"Figure 2: the maximin game on {cell.data}, {cell.encoder}, preset {cell.preset}, {cell.variant}"
        name = f"figure-2-{cell.preset}-{cell.data.rstrip('*')}-{cell.encoder}-{cell.variant.replace(' ', '-')}"
        text = f"{text}; {len(runs)} seeds, dots mark the best epoch"
        drawn.append(Picture(name, text, partial(_draw_game, runs)))
    return drawn


def _draw_game(runs: Sequence[Mapping[str, Sequence[Mapping[str, float]]]], theme: Theme) -> bytes:
    with themed(theme):
        figure = Figure(figsize=(8.2, 3.0), layout="constrained")
        loss, score = figure.subplots(1, 2)
        for name, title in CURVE_TITLES.items():
            for axes, key in ((loss, "field_loss"), (score, "field_score")):
                points = [{row["epoch"]: row[key] for row in run[name] if key in row} for run in runs if name in run]
                epochs = sorted({epoch for one in points for epoch in one})
                if not epochs:
                    continue
                values = np.array([[one.get(epoch, np.nan) for epoch in epochs] for one in points])
                values = 100 * values if key == "field_score" else values
                middle, spread = np.nanmean(values, 0), np.nanstd(values, 0)
                axes.plot(epochs, middle, color=CURVE_COLOURS[name], label=title, linewidth=1.6)
                lowest = np.maximum(middle - spread, np.nanmin(values, 0))  # a logarithmic axis has no room below 0
                axes.fill_between(epochs, lowest, middle + spread, color=CURVE_COLOURS[name], alpha=0.2, lw=0)
                if key == "field_score":
                    best = int(np.nanargmax(middle))
                    axes.plot(epochs[best], middle[best], "o", color=CURVE_COLOURS[name], markersize=5)
        loss.set(title="training: negative log-likelihood per node", xlabel="epoch of the game", yscale="log")
        score.set(title="validation accuracy, %", xlabel="epoch of the game")
        score.legend()
        return to_png(figure)


def _cases(results: Results) -> list[Picture]:
    """Figure 3: test graphs that only the SPN labels right."""
    drawn = []
    for cell in sorted(cell for cell in results.by_cell if cell.experiment == CASE):
        for details in results.details(cell).values():
            if not isinstance(details, dict):
                continue
            for number, plain in enumerate(details["cases"], 1):
                case = Case(**plain)
                text = f"Figure 3: {cell.data}, {cell.encoder}, preset {cell.preset}: {case.title}"
                draw = partial(draw_case, case, details["names"], PART_TITLES)
                drawn.append(Picture(f"figure-3-{number}", text, draw))
    return drawn


def _f1(results: Results, cell: Cell, way: str = "spn") -> float | None:
    """Micro-F1 of the first label, mean over seeds."""
    found = results.summary(Source(cell, way, "f1"))
    return None if found is None else found.mean


def _heads(results: Results) -> list[Picture]:
    """Figure 4: heads of either network, and pairs of backbones."""
    heads = {
        part: [_f1(results, Cell(HEADS, "ppi-1", "spn", "gat", "authors", f"{part} {n}")) for n in HEAD_COUNTS]
        for part in PARTS
    }
    pairs = [
        [_f1(results, Cell(BACKBONES, "ppi-1", "spn", f"{node}+{edge}", "authors")) for edge in BACKBONE_ENCODERS]
        for node in BACKBONE_ENCODERS
    ]
    if not any(value is not None for row in [*heads.values(), *pairs] for value in row):
        return []
    text = "Figure 4: heads and backbones, first label of PPI-1"
    return [Picture("figure-4", text, partial(_draw_heads, heads, pairs))]


def _draw_heads(
    heads: Mapping[str, Sequence[float | None]], pairs: Sequence[Sequence[float | None]], theme: Theme
) -> bytes:
    with themed(theme):
        figure = Figure(figsize=(8.2, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for part, colour in zip(PARTS, ("#2f7fd3", "#d98e2b"), strict=True):
            points = [(n, 100 * v) for n, v in zip(HEAD_COUNTS, heads[part], strict=True) if v is not None]
            if points:
                left.plot(*zip(*points, strict=True), "o-", color=colour, label=f"heads of the {part} network")
        left.set(title="micro-F1 of the first label by heads, %", xlabel="heads in every layer")
        if left.get_lines():
            left.legend()
        table = np.array([[np.nan if v is None else 100 * v for v in row] for row in pairs], dtype=float)
        right.grid(visible=False)
        if np.isfinite(table).any():
            right.imshow(table, cmap="Blues", alpha=0.6)
            for (row, column), value in np.ndenumerate(table):
                if np.isfinite(value):
                    right.text(column, row, f"{value:.1f}", ha="center", va="center")
        places = range(len(BACKBONE_ENCODERS))
        right.set(title="by node (rows) and edge network, %", xticks=places, yticks=places)
        right.set_xticklabels(BACKBONE_ENCODERS)
        right.set_yticklabels(BACKBONE_ENCODERS)
        return to_png(figure)


def _sharpness(results: Results) -> list[Picture]:
    """Figure 5 and the ablation: accuracy by sharpness, for every normaliser."""
    drawn = []
    for preset in ("authors", "paper", "accord"):
        for encoder in ABLATED_ENCODERS:
            for variant in WIDTHS:
                cells = [cell for cell in ablated(preset) if (cell.encoder, cell.variant) == (encoder, variant)]
                known = {cell.data: (cell, ablation_tables(results, cell)) for cell in cells}
                known = {data: pair for data, pair in known.items() if pair[1]}
                if known:
                    name = f"figure-5-{preset}-{encoder}{variant.replace('width ', '-')}"
                    text = f"Figure 5 and ablation: accuracy by sharpness, {encoder} {variant}".rstrip()
                    draw = partial(_draw_sharpness, results, known)
                    drawn.append(Picture(name, f"{text}, preset {preset}", draw))
    return drawn


def _draw_sharpness(results: Results, known: Mapping[str, tuple[Cell, list[Any]]], theme: Theme) -> bytes:
    with themed(theme):
        figure = Figure(figsize=(8.2, 3.1), layout="constrained")
        panels = figure.subplots(1, len(known), squeeze=False)[0]
        for axes, (data, (cell, tables)) in zip(panels, known.items(), strict=True):
            measure = ablated_measure(cell)
            kind = measure.removeprefix("test ")
            axes.set(title=f"{data}, {kind}s", xscale="log", xlabel="sharpness")
            for normaliser, colour in zip(NORMALISERS, LINES, strict=True):
                values = [table[f"{normaliser} max"][measure] for table in tables]
                title = NAMES.get(normaliser, f"own sums^{normaliser.partition('^')[2]}")
                axes.plot(SHARPNESS, 100 * np.mean(values, 0), ".-", color=colour, label=title, linewidth=1.4)
            training = Cell(TRAINING, data, "spn", cell.encoder, cell.preset, cell.variant)
            gnn = results.summary(Source(training, "gnn", kind))
            if gnn is not None:
                axes.axhline(100 * gnn.mean, color=theme.ink, linestyle="--", linewidth=1, label="GNN alone")
        panels[0].set_ylabel("accuracy, %")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8)
        return to_png(figure)
