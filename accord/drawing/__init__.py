"""Pages, themes and plots that reports of runs, experiments and benchmarks share."""

from accord.drawing import _page as page
from accord.drawing._graphs import draw_case
from accord.drawing._plots import draw_curves, draw_reliability
from accord.drawing._themes import DARK, LIGHT, Theme, themed, to_png

__all__ = ["DARK", "LIGHT", "Theme", "draw_case", "draw_curves", "draw_reliability", "page", "themed", "to_png"]
