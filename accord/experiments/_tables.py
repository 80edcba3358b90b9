"""Stored results as Markdown tables, the paper's figures beside ours."""

from collections.abc import Sequence
from statistics import mean, stdev

from accord.experiments._comparison import Comparison

# Tab. 2 (graph accuracy) and Tab. 10 (node accuracy) of the paper, in percent.
PAPER_GRAPH: dict[tuple[str, str], tuple[float, float | None]] = {
    ("cora*", "gcn"): (57.26, None),
    ("cora*", "gat"): (51.99, 58.78),
    ("cora*", "gcnii"): (59.15, 60.47),
    ("citeseer*", "gcn"): (46.24, None),
    ("citeseer*", "gat"): (47.94, 49.02),
    ("citeseer*", "gcnii"): (46.39, 48.34),
    ("pubmed*", "gcn"): (51.84, None),
    ("pubmed*", "gat"): (50.89, 52.91),
    ("pubmed*", "gcnii"): (53.54, 54.35),
}


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
        gnn, spn = PAPER_GRAPH.get((entry.benchmark, entry.encoder), (None, None))
        cells.append(f"{_plain(gnn)} / {_plain(spn)}")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def _cell(values: Sequence[float]) -> str:
    spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.1f}{spread}"


def _p(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"


def _plain(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
