"""The pictures of docs/how_it_works.md, drawn from a small model that is trained here in a few seconds.

python docs/tools/pictures.py

Each picture is drawn for light and for dark pages. Numbers that the page quotes are printed.
"""

import argparse
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Wedge
from matplotlib.ticker import PercentFormatter
from PIL import Image
from torch import Tensor
from torch_geometric.data import Data

import accord
from accord._files import write_bytes
from accord.datasets import make_digits
from accord.drawing import DARK, LIGHT, Theme, themed, to_png
from accord.drawing._layout import place_nodes
from accord.drawing._themes import PART_COLOURS, WRONG_COLOUR, state_colour
from accord.evaluation import NODE, expected_calibration_error, reliability
from accord.field import PairwiseField
from accord.graphs import graph_topology
from accord.inference import Beliefs

OUT = Path(__file__).resolve().parents[1] / "pictures"
STATES = 10
SWEEPS = 10  # shown in the picture of belief propagation
MAX_SHOWN = 4  # curves that get a name


@dataclass(frozen=True)
class Example:
    """A test graph whose joint labels are all right where the node network's are not, and what the model says of it."""

    graph: Data
    field: PairwiseField
    alone: Tensor  # [nodes, states], probabilities by the node network
    joint: Tensor  # [nodes, states], sum-product marginals
    labels: Tensor  # [nodes], joint labels

    @property
    def turned(self) -> int:
        """The node whose right label was least likely by the node network."""
        return int(self.alone.gather(1, self.graph.y[:, None]).argmin())


def train(graphs: int, epochs: int) -> tuple[accord.NodeClassifier, list[Data]]:
    """A small model of two networks that see single images, and test graphs."""
    digits = make_digits(graphs, 2 * graphs, 2 * graphs, seed=0)
    model = accord.NodeClassifier(encoder="mlp", level="graph", max_epochs=epochs)
    return model.fit(digits.train, digits.val), digits.test


def find_example(model: accord.NodeClassifier, graphs: list[Data]) -> Example:
    """The graph with the most wrong labels of the node network among those whose joint labels are all right."""
    labels, answers = model.predict(graphs), model.answers(graphs)
    sizes = [int(graph.num_nodes) for graph in graphs]
    alone = answers.probabilities[NODE][0].split(sizes)
    mistakes = [int((one.argmax(-1) != graph.y).sum()) for one, graph in zip(alone, graphs, strict=True)]
    jointly = [int((one != graph.y).sum()) for one, graph in zip(labels, graphs, strict=True)]
    best = max(range(len(graphs)), key=lambda place: (-jointly[place], mistakes[place]))
    batch = model.collate([graphs[best]])
    field = model.model_.field(batch)
    field = PairwiseField(field.edge_index, field.node[0], field.edge[0])
    marginals = accord.propagate(field, damping=0.5).node.exp()
    return Example(graphs[best], field, alone[best], marginals, labels[best])


def draw_evidence(example: Example, theme: Theme) -> bytes:
    """The node network's probabilities and the joint marginals, as pies on the same graph."""
    edges = graph_topology(example.graph).edge_index.numpy()
    position = place_nodes(int(example.graph.num_nodes), edges)
    gaps = np.linalg.norm(position[:, None] - position[None], axis=-1)[np.triu_indices(len(position), 1)]
    radius = float(np.clip(0.42 * gaps.min(), 0.1, 0.18))  # nodes do not touch
    half = max(0.5, float(np.ptp(position[:, 1])) / 2 + 0.3)
    with themed(theme):
        figure = Figure(figsize=(8.2, 8.2 / 3 * half / 1.3 + 0.65))
        panels = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.005, right=0.995, top=0.9, bottom=0.12, wspace=0.02)
        truth = torch.nn.functional.one_hot(example.graph.y, STATES).float()
        titles = ("images and true labels", "node network alone", "joint marginals")
        for axes, title, shares in zip(panels, titles, (truth, example.alone, example.joint), strict=True):
            axes.set(xlim=(-1.3, 1.3), ylim=(-half, half), aspect="equal")
            axes.axis("off")
            lines = np.stack([position[edges[0]], position[edges[1]]], 1)
            axes.add_collection(LineCollection(list(lines), colors=theme.soft, linewidths=1.2, zorder=1))
            for node, place in enumerate(position):
                image = example.graph.x[node].reshape(8, 8).numpy() if shares is truth else None
                _draw_node(axes, place, radius, shares[node], int(example.graph.y[node]), image)
            wrong = int((shares.argmax(-1) != example.graph.y).sum())
            axes.set_title(title if shares is truth else f"{title}: {wrong} wrong", loc="center")
        handles = [Circle((0, 0), 1, facecolor=state_colour(state, STATES)) for state in range(STATES)]
        names = [str(state) for state in range(STATES)]
        figure.legend(handles, names, loc="lower center", ncols=STATES, handlelength=1, columnspacing=1.2)
        return to_png(figure)


def _draw_node(
    axes: Axes, place: np.ndarray, radius: float, shares: Tensor, true: int, image: np.ndarray | None
) -> None:
    """A node as a pie of its probabilities, or as its image; a red ring marks a wrong first choice."""
    x, y = float(place[0]), float(place[1])
    if image is not None:
        inner = 0.68 * radius
        axes.imshow(image, cmap="gray_r", extent=(x - inner, x + inner, y - inner, y + inner), zorder=4)
        axes.add_patch(Circle((x, y), 1.1 * radius, facecolor=state_colour(true, STATES), zorder=3))
        return
    if int(shares.argmax()) != true:
        axes.add_patch(Circle((x, y), 1.3 * radius, fill=False, edgecolor=WRONG_COLOUR, linewidth=2, zorder=2))
    start = 90.0
    for state, share in enumerate(shares.tolist()):
        colour = state_colour(state, STATES)
        axes.add_patch(Wedge((x, y), radius, start, start + 360 * share, facecolor=colour, linewidth=0, zorder=3))
        start += 360 * share


def draw_table(example: Example, theme: Theme) -> bytes:
    """One edge: the images at its ends, what the node network says of them, and the edge's potentials."""
    node = example.turned
    source, target = example.field.edge_index
    place = int(((source == node) | (target == node)).nonzero()[0])
    ends = [int(source[place]), int(target[place])]
    with themed(theme):
        figure = Figure(figsize=(8.2, 2.9))
        figure.subplots_adjust(left=0.02, right=0.95, top=0.86, bottom=0.17, wspace=0.35)
        *images, bars, table = figure.subplots(1, 4, width_ratios=(0.6, 0.6, 1.3, 1.25))
        for axes, end, name in zip(images, ends, "st", strict=True):
            axes.imshow(example.graph.x[end].reshape(8, 8).numpy(), cmap="gray_r")
            axes.set_title(f"node {name}: a {int(example.graph.y[end])}", loc="center")
            axes.set(xticks=[], yticks=[])
            axes.grid(False)
        width = 0.4
        for shift, end, name, colour in zip((-0.5, 0.5), ends, "st", ("#2f7fd3", "#d98e2b"), strict=True):
            bars.bar(
                np.arange(STATES) + shift * width, example.alone[end].numpy(), width, color=colour, label=f"node {name}"
            )
        bars.set(title="node network", xticks=range(STATES), xlabel="digit")
        bars.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        bars.legend()
        potential = example.field.edge[place].numpy()
        limit = float(np.abs(potential - potential.mean()).max())
        drawn = table.imshow(potential - potential.mean(), cmap="RdBu_r", vmin=-limit, vmax=limit)
        table.set(title="edge potential, nats", xlabel="digit at t", ylabel="digit at s")
        table.set(xticks=range(STATES), yticks=range(STATES))
        table.grid(False)
        figure.colorbar(drawn, ax=table, fraction=0.046, pad=0.04)
        return to_png(figure)


def draw_sweeps(example: Example, theme: Theme) -> bytes:
    """Beliefs of the node that changes most, sweep by sweep; and the largest change of a message."""
    runs = [sweep(example.field, count) for count in range(1, SWEEPS + 1)]
    start = example.field.node.log_softmax(-1).exp()
    paths = torch.stack([start[example.turned], *(run.node.exp()[example.turned] for run in runs)])
    shown = paths.amax(0).topk(MAX_SHOWN).indices.tolist()
    with themed(theme):
        figure = Figure(figsize=(8.2, 2.9))
        figure.subplots_adjust(left=0.07, right=0.985, top=0.9, bottom=0.165, wspace=0.22)
        beliefs, changes = figure.subplots(1, 2)
        for state in sorted(shown):
            true = " (true)" if state == int(example.graph.y[example.turned]) else ""
            colour = state_colour(state, STATES)
            beliefs.plot(paths[:, state].numpy(), "o-", color=colour, label=f"digit {state}{true}", markersize=4)
        beliefs.set(title="belief of one node", xlabel="sweeps", ylim=(0, 1))
        beliefs.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        beliefs.legend()
        for damping, colour in ((0.0, "#2f7fd3"), (0.5, "#d98e2b")):
            counts = range(1, 4 * SWEEPS + 1)
            residuals = [float(sweep(example.field, count, damping).residual) for count in counts]
            changes.semilogy(counts, residuals, color=colour, label=f"damping {damping:g}")
        changes.axhline(1e-5, color=theme.soft, linestyle="--", linewidth=1)
        changes.set(title="largest change of a log-message", xlabel="sweeps")
        changes.legend()
        return to_png(figure)


def sweep(field: PairwiseField, count: int, damping: float = 0.0) -> Beliefs:
    """Beliefs after so many sweeps, converged or not."""
    return accord.propagate(field, damping=damping, max_sweeps=count, tolerance=0.0)


def calibration(model: accord.NodeClassifier, graphs: list[Data]) -> dict[str, tuple[Tensor, str]]:
    """Probabilities [nodes, states] before and after calibration, each with a colour."""
    beliefs = model.model_.beliefs(model.collate(graphs), "sum")
    calibrated = model.model_.calibrated(beliefs)[0]
    return {
        "beliefs": (beliefs.node[0].exp(), PART_COLOURS[NODE]),
        "calibrated": (calibrated, PART_COLOURS["spn"]),
    }


def draw_calibration(found: dict[str, tuple[Tensor, str]], truth: Tensor, theme: Theme) -> bytes:
    """How often labels of some probability are right, before and after calibration."""
    with themed(theme):
        figure = Figure(figsize=(8.2, 3.2))
        figure.subplots_adjust(left=0.08, right=0.985, top=0.9, bottom=0.15, wspace=0.22)
        axes, counts = figure.subplots(1, 2)
        axes.plot([0, 1], [0, 1], color=theme.soft, linewidth=1, linestyle="--")
        for place, (name, (probabilities, colour)) in enumerate(found.items()):
            bins = reliability(probabilities, truth)
            error = expected_calibration_error(probabilities, truth)
            title = f"{name}: error {100 * error:.1f} points"
            axes.plot(bins.confidence, bins.accuracy, "o-", color=colour, label=title, markersize=4)
            nodes, edges = np.histogram(probabilities.max(-1).values.numpy(), bins=10, range=(0, 1))
            counts.bar(edges[:-1] + 0.03 + 0.04 * place, nodes / nodes.sum(), width=0.04, color=colour, label=name)
        axes.set(title="accuracy by probability", xlabel="probability of the likeliest digit", ylabel="nodes right")
        counts.set(title="nodes by probability", xlabel="probability of the likeliest digit", ylabel="share of nodes")
        for axis in (axes.xaxis, axes.yaxis, counts.xaxis, counts.yaxis):
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        for each in (axes, counts):
            each.legend(loc="upper left")
        return to_png(figure)


def small(picture: bytes) -> bytes:
    """The picture with at most 128 colours: a third of the size, and no difference to the eye."""
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(128).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def main(out: Path = OUT, graphs: int = 150, epochs: int = 60) -> None:
    """Train, draw every picture in both themes, and print the numbers that the page quotes."""
    model, test = train(graphs, epochs)
    example = find_example(model, test)
    truth = torch.cat([graph.y for graph in test])
    found = calibration(model, test)
    out.mkdir(parents=True, exist_ok=True)
    for theme, ending in ((LIGHT, "png"), (DARK, "dark.png")):
        pictures = {
            "evidence": draw_evidence(example, theme),
            "table": draw_table(example, theme),
            "sweeps": draw_sweeps(example, theme),
            "calibration": draw_calibration(found, truth, theme),
        }
        for name, picture in pictures.items():
            write_bytes(out / f"{name}.{ending}", small(picture))
    for name in ("sharpness", "power", "node_weight", "temperature", "evidence_share"):
        print(f"{name} {model.choice_[name][0]:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    main(parser.parse_args().out)
