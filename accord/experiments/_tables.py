"""Stored results as Markdown tables, the paper's figures beside ours."""

from collections.abc import Sequence
from statistics import mean, stdev

from accord.experiments._comparison import Comparison
from accord.experiments._paper import paper_figure


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    """One row for each data set and encoder: GNN and SPN, mean and standard deviation over seeds, in percent."""
    head = (
        "| data | encoder | preset | seeds | GNN graph | SPN graph | p | GNN node | SPN node | "
        "GNN unseen | SPN unseen | paper GNN / SPN graph |"
    )
    rows = [head, "|" + "---|" * 12]
    for entry in comparisons:
        cells = [entry.benchmark, entry.encoder, entry.preset, str(len(entry.seeds))]
        cells += [_cell(entry.gnn["graph"]), _cell(entry.spn["graph"]), _p(entry.p_value("graph"))]
        cells += [_cell(entry.gnn["node"]), _cell(entry.spn["node"])]
        cells += [_cell(entry.gnn["node_unseen"]), _cell(entry.spn["node_unseen"])]
        paper = [paper_figure("graph", method, entry.encoder, entry.benchmark) for method in ("gnn", "spn")]
        cells.append(" / ".join("-" if figure is None else f"{figure.mean:.1f}" for figure in paper))
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _cell(values: Sequence[float]) -> str:
    spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{spread}"


def _p(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"
