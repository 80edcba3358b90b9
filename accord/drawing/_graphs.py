"""Drawings of labelled graphs: one panel with the true labels, and one for each part of the model."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from matplotlib.patches import Circle

from accord.drawing._layout import place_nodes
from accord.drawing._themes import LIGHT, WRONG_COLOUR, Theme, state_colour, themed, to_png
from accord.evaluation import Case

PANEL_WIDTH = 2.05  # inches
MARGIN = 0.3  # around the outermost nodes, which lie at -1 and 1
UNKNOWN_COLOUR = "#9aa0a6"  # of a node whose true label is missing
LEGEND_COLUMNS = 5
LETTERS_IN_NODE = 2  # longer names do not fit into a node and go into the legend
LETTERS_IN_LEGEND = 24


def draw_case(case: Case, label_names: Sequence[str], titles: Mapping[str, str], theme: Theme = LIGHT) -> bytes:
    """A picture of one case; a red ring marks a wrong label.

    Args:
        case: the graph and its labels.
        label_names: names of the states.
        titles: part -> title of its panel; parts without a title are left out.
        theme: colours of the page.

    Returns:
        A PNG.
    """
    parts = [name for name in titles if name in case.labels]
    position = place_nodes(len(case.truth), np.array(case.edges, dtype=int).reshape(2, -1))
    half = max(0.45, float(np.ptp(position[:, 1])) / 2 + MARGIN)
    height = half / (1 + MARGIN) * PANEL_WIDTH + 0.35
    states = sorted({*case.truth, *(state for labels in case.labels.values() for state in labels)} - {-1})
    rows = -(-len(states) // LEGEND_COLUMNS) if _needs_legend(label_names, states) else 0
    with themed(theme):
        figure = Figure(figsize=(PANEL_WIDTH * (1 + len(parts)), height + 0.22 * rows))
        panels = figure.subplots(1, 1 + len(parts), squeeze=False)[0]
        figure.subplots_adjust(
            left=0.005,
            right=0.995,
            top=1 - 0.26 / figure.get_figheight(),
            bottom=0.22 * rows / figure.get_figheight(),
            wspace=0.02,
        )
        for axes, name in zip(panels, [None, *parts], strict=True):
            labels = case.truth if name is None else case.labels[name]
            axes.set(xlim=(-1 - MARGIN, 1 + MARGIN), ylim=(-half, half), aspect="equal")
            axes.axis("off")
            _draw_panel(axes, case, labels, position, label_names, theme, with_images=name is None)
            mistakes = sum(1 for a, b in zip(labels, case.truth, strict=True) if b >= 0 and a != b)
            note = "" if name is None else " ✓" if not mistakes else f", {mistakes} wrong"
            axes.set_title(("true labels" if name is None else titles[name]) + note, loc="center", fontsize=9)
        if rows:
            entries = [_legend_entry(label_names, state, theme) for state in states]
            figure.legend(handles=entries, loc="lower center", ncols=min(LEGEND_COLUMNS, len(entries)), fontsize=8)
        return to_png(figure)


def _draw_panel(
    axes: Axes,
    case: Case,
    labels: Sequence[int],
    position: np.ndarray,
    label_names: Sequence[str],
    theme: Theme,
    with_images: bool,
) -> None:
    source, target = np.array(case.edges, dtype=int).reshape(2, -1)
    segments = np.stack([position[source], position[target]], 1)
    axes.add_collection(LineCollection(list(segments), colors=theme.soft, linewidths=1.2, zorder=1))
    radius = _radius(position)
    for node, (state, true) in enumerate(zip(labels, case.truth, strict=True)):
        place = (float(position[node, 0]), float(position[node, 1]))
        colour = UNKNOWN_COLOUR if state < 0 else state_colour(state, len(label_names))
        if true >= 0 and state != true:
            axes.add_patch(Circle(place, 1.38 * radius, fill=False, edgecolor=WRONG_COLOUR, linewidth=2, zorder=2))
        axes.add_patch(Circle(place, radius, facecolor=colour, edgecolor=theme.paper, linewidth=0.8, zorder=3))
        if with_images and case.images is not None:
            _draw_image(axes, case.images[node], place, radius, colour)
            if state >= 0:
                corner = (place[0] + 1.1 * radius, place[1] + 0.9 * radius)
                axes.text(*corner, label_names[state], fontsize=7, fontweight="bold", va="center", zorder=6)
        elif state >= 0 and len(label_names[state]) <= LETTERS_IN_NODE:
            style = {"ha": "center", "va": "center_baseline", "fontsize": 54 * radius, "color": "#16181c"}
            axes.text(*place, label_names[state], style, zorder=4)


def _draw_image(axes: Axes, pixels: Sequence[float], place: tuple[float, float], radius: float, colour: str) -> None:
    """Draw a node as a small square image, framed in the colour of its state."""
    side = int(np.sqrt(len(pixels)))
    image = np.array(pixels).reshape(side, side)
    dots = 1.9 * radius / (2 + 2 * MARGIN) * PANEL_WIDTH * 72  # the width of a node, in points
    inset = OffsetImage(image, zoom=dots / side, cmap="gray_r", interpolation="nearest")
    frame = {"edgecolor": colour, "linewidth": 2.2, "boxstyle": "square,pad=0.02"}
    axes.add_artist(AnnotationBbox(inset, place, pad=0, bboxprops=frame, zorder=5))


def _radius(position: np.ndarray) -> float:
    """The largest radius at which nodes do not touch."""
    if len(position) < 2:
        return 0.17
    gap = np.linalg.norm(position[:, None] - position[None], axis=-1)
    return float(np.clip(0.4 * gap[np.triu_indices(len(position), 1)].min(), 0.09, 0.17))


def _needs_legend(label_names: Sequence[str], states: Sequence[int]) -> bool:
    return any(len(label_names[state]) > LETTERS_IN_NODE for state in states)


def _legend_entry(label_names: Sequence[str], state: int, theme: Theme) -> Line2D:
    name = label_names[state]
    return Line2D(
        [],
        [],
        linestyle="none",
        marker="o",
        markersize=7,
        markerfacecolor=state_colour(state, len(label_names)),
        markeredgecolor=theme.paper,
        label=name if len(name) <= LETTERS_IN_LEGEND else f"{name[: LETTERS_IN_LEGEND - 1]}…",
    )
