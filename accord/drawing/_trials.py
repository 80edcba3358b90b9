"""A picture of a search: the validation score of every trial, and the best score so far by time."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from accord.drawing._themes import LIGHT, Theme, themed, to_png
from accord.tuning import TITLES, TrialResult

COLOURS = {"pair": "#9b59b6", "whole": "#9b59b6", "node": "#2f7fd3", "edge": "#d98e2b"}
SMALLEST_MARK, RUNG_MARK = 18.0, 26.0  # area of a mark, and what each rung adds


def draw_trials(trials: Sequence[TrialResult], theme: Theme = LIGHT) -> bytes:
    """Scores by trial and rung (larger marks are later rungs), and the best so far against seconds, as a PNG."""
    with themed(theme):
        figure = Figure(figsize=(8.2, 3.2))
        figure.subplots_adjust(left=0.075, right=0.985, top=0.9, bottom=0.155, wspace=0.2)
        scores, progress = figure.subplots(1, 2)
        for part in COLOURS:
            own = sorted((one for one in trials if one.part == part and one.score is not None), key=lambda one: one.at)
            if own:
                _draw_scores(scores, own, part)
                _draw_progress(progress, own, part)
        scores.set(title="validation score by trial", xlabel="trial")
        progress.set(title="best so far", xlabel="seconds")
        for axes in (scores, progress):
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if scores.has_data():
            progress.legend(loc="best")  # for both, which have the same colours
        return to_png(figure)


def _draw_scores(axes: Axes, trials: Sequence[TrialResult], part: str) -> None:
    """Pairs are numbered in the order in which they were judged."""
    places = [place if part == "pair" else one.number for place, one in enumerate(trials)]
    sizes = [SMALLEST_MARK + RUNG_MARK * one.rung for one in trials]
    values = [one.score or 0.0 for one in trials]
    axes.scatter(places, values, s=sizes, color=COLOURS[part], alpha=0.6, label=TITLES[part], linewidths=0)


def _draw_progress(axes: Axes, trials: Sequence[TrialResult], part: str) -> None:
    best: list[float] = []
    for one in trials:
        best.append(max([*best[-1:], one.score or 0.0]))
    axes.step([one.at for one in trials], best, where="post", color=COLOURS[part], label=TITLES[part], linewidth=1.6)
    axes.plot(trials[-1].at, best[-1], "o", color=COLOURS[part], markersize=4)
