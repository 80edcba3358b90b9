"""Colours of pictures for light and dark pages, and figures as PNG."""

import colorsys
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

DPI = 170  # sharp on high-resolution screens at the width of the page

# As easy to tell apart for colour-blind readers as ten colours can be; none is close to WRONG_COLOUR.
STATE_COLOURS = (
    "#4e79a7",
    "#f2a541",
    "#59a14f",
    "#b07aa1",
    "#76b7b2",
    "#edc948",
    "#9c755f",
    "#8cd17d",
    "#86bcef",
    "#d4a6c8",
)
PART_COLOURS = {"gnn": "#8a8f98", "edge": "#d98e2b", **dict.fromkeys(("spn", "crf", "gmnn", "smooth"), "#2f7fd3")}
WRONG_COLOUR = "#e5322d"  # rings around wrong labels


@dataclass(frozen=True)
class Theme:
    """Colours that differ between light and dark pages."""

    name: str
    ink: str
    soft: str  # axes, edges of graphs
    paper: str


LIGHT = Theme("light", ink="#1f2328", soft="#a8b0b9", paper="#ffffff")
DARK = Theme("dark", ink="#e6edf3", soft="#5b6570", paper="#161b22")


def state_colour(state: int, num_states: int) -> str:
    """The colour of a state, the same in every picture."""
    if num_states <= len(STATE_COLOURS):
        return STATE_COLOURS[state]
    red, green, blue = colorsys.hls_to_rgb(0.08 + 0.84 * state / num_states, 0.45 + 0.2 * (state % 2), 0.55)
    return f"#{round(255 * red):02x}{round(255 * green):02x}{round(255 * blue):02x}"


@contextmanager
def themed(theme: Theme) -> Iterator[None]:
    """A context in which matplotlib draws in a theme; its defaults are restored at the end."""
    style: Any = {
        "axes.edgecolor": theme.soft,
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.labelcolor": theme.ink,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": theme.ink,
        "axes.titlelocation": "left",
        "axes.titlesize": 10,
        "figure.facecolor": theme.paper,
        "font.size": 9,
        "grid.alpha": 0.35,
        "grid.color": theme.soft,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.labelcolor": theme.ink,
        "text.color": theme.ink,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
    }
    with matplotlib.rc_context(style):
        yield


def to_png(figure: Figure) -> bytes:
    """A figure as the bytes of a PNG; no display is needed."""
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    # No version in the metadata: the same run gives the same bytes.
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()
