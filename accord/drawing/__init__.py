"""HTML pages, themes and plots, shared by the reports of runs, experiments and benchmarks."""

from accord.drawing import _page as page
from accord.drawing._graphs import draw_case
from accord.drawing._large_layout import nearest_nodes
from accord.drawing._layout import adjacency_of, place_nodes
from accord.drawing._plots import draw_curves, draw_reliability
from accord.drawing._themes import DARK, LIGHT, Theme, state_colour, themed, to_png
from accord.drawing._trials import draw_trials

__all__ = [
    "DARK",
    "LIGHT",
    "Theme",
    "adjacency_of",
    "draw_case",
    "draw_curves",
    "draw_reliability",
    "draw_trials",
    "nearest_nodes",
    "page",
    "place_nodes",
    "state_colour",
    "themed",
    "to_png",
]
