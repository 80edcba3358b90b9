"""The paper's figures in percent: citation sets (graph accuracy Tab. 2, node accuracy Tab. 10), PPI (Tab. 1)."""

from typing import NamedTuple

SETS = ("cora*", "citeseer*", "pubmed*")


class Figure(NamedTuple):
    """Mean and standard deviation over seeds: ten on citation sets, five on PPI."""

    mean: float
    deviation: float


# Rows by method and encoder; the paper's GMNN names no encoder. Cells in the order of SETS.
GRAPH: dict[tuple[str, str | None], tuple[Figure, ...]] = {
    ("gnn", "gcn"): (Figure(57.26, 0.66), Figure(46.24, 0.61), Figure(51.84, 0.45)),
    ("gnn", "sage"): (Figure(49.02, 2.37), Figure(41.32, 2.41), Figure(48.61, 1.28)),
    ("gnn", "gat"): (Figure(51.99, 3.51), Figure(47.94, 0.46), Figure(50.89, 0.52)),
    ("gnn", "unet"): (Figure(56.07, 0.57), Figure(45.91, 1.65), Figure(51.77, 0.97)),
    ("gnn", "gcnii"): (Figure(59.15, 0.67), Figure(46.39, 0.92), Figure(53.54, 0.98)),
    ("crf", "linear"): (Figure(42.78, 3.94), Figure(40.60, 0.81), Figure(43.90, 2.91)),
    ("crf", "gat"): (Figure(49.10, 3.80), Figure(42.89, 1.30), Figure(47.79, 1.33)),
    ("crf", "unet"): (Figure(53.49, 2.47), Figure(43.66, 2.12), Figure(50.02, 0.88)),
    ("crf", "gcnii"): (Figure(36.18, 5.75), Figure(38.27, 4.82), Figure(41.71, 4.79)),
    ("gmnn", None): (Figure(54.30, 1.15), Figure(48.46, 1.06), Figure(51.70, 1.23)),
    ("spn", "gat"): (Figure(58.78, 1.21), Figure(49.02, 0.78), Figure(52.91, 0.54)),
    ("spn", "unet"): (Figure(58.03, 0.54), Figure(46.97, 1.06), Figure(53.36, 0.67)),
    ("spn", "gcnii"): (Figure(60.47, 0.49), Figure(48.34, 0.50), Figure(54.35, 0.64)),
}
NODE: dict[tuple[str, str | None], tuple[Figure, ...]] = {
    ("gnn", "gcn"): (Figure(79.85, 0.24), Figure(72.25, 0.71), Figure(78.05, 0.55)),
    ("gnn", "sage"): (Figure(73.43, 1.67), Figure(62.48, 2.19), Figure(73.99, 1.26)),
    ("gnn", "gat"): (Figure(79.65, 1.25), Figure(74.15, 0.12), Figure(78.62, 0.52)),
    ("gnn", "unet"): (Figure(78.72, 0.63), Figure(71.36, 1.37), Figure(77.93, 0.60)),
    ("gnn", "gcnii"): (Figure(82.84, 0.37), Figure(72.61, 0.49), Figure(79.47, 0.55)),
    ("crf", "linear"): (Figure(68.47, 2.13), Figure(65.88, 0.85), Figure(65.93, 2.18)),
    ("crf", "gat"): (Figure(77.75, 1.24), Figure(69.13, 1.10), Figure(75.96, 1.06)),
    ("crf", "unet"): (Figure(78.32, 1.51), Figure(70.78, 1.15), Figure(77.91, 0.56)),
    ("crf", "gcnii"): (Figure(35.98, 7.40), Figure(33.73, 5.87), Figure(60.55, 4.17)),
    ("gmnn", None): (Figure(79.90, 0.93), Figure(72.18, 0.48), Figure(78.00, 1.04)),
    ("spn", "gat"): (Figure(83.13, 0.48), Figure(74.50, 0.36), Figure(79.23, 0.33)),
    ("spn", "unet"): (Figure(81.11, 0.55), Figure(72.28, 0.94), Figure(78.70, 0.37)),
    ("spn", "gcnii"): (Figure(83.54, 0.27), Figure(74.04, 0.29), Figure(79.95, 0.38)),
}
MEASURES = {"graph": GRAPH, "node": NODE}


def paper_figure(measure: str, method: str, encoder: str, benchmark: str) -> Figure | None:
    """What the paper reports, or None where it does not."""
    table = MEASURES[measure]
    row = table.get((method, encoder), table.get((method, None)))
    return None if row is None or benchmark not in SETS else row[SETS.index(benchmark)]


PPI_SETS = ("ppi-1", "ppi-2", "ppi-10", "ppi-20")
# Rows by method and encoder; cells in the order of PPI_SETS.
PPI_ACCURACY: dict[tuple[str, str], tuple[Figure, ...]] = {
    ("gnn", "gcn"): (Figure(76.62, 0.10), Figure(77.48, 0.12), Figure(80.43, 0.10), Figure(82.28, 0.24)),
    ("gnn", "sage"): (Figure(81.02, 0.07), Figure(84.13, 0.04), Figure(95.34, 0.03), Figure(98.51, 0.02)),
    ("gnn", "gat"): (Figure(77.49, 0.20), Figure(81.35, 0.19), Figure(96.14, 0.15), Figure(98.85, 0.05)),
    ("gnn", "gcnii"): (Figure(80.99, 0.07), Figure(84.81, 0.06), Figure(97.53, 0.01), Figure(99.39, 0.00)),
    ("spn", "gcn"): (Figure(77.07, 0.05), Figure(78.02, 0.05), Figure(80.59, 0.04), Figure(82.56, 0.20)),
    ("spn", "sage"): (Figure(82.11, 0.03), Figure(85.40, 0.05), Figure(95.28, 0.02), Figure(98.55, 0.02)),
    ("spn", "gat"): (Figure(79.01, 0.17), Figure(83.55, 0.12), Figure(96.68, 0.13), Figure(99.04, 0.06)),
    ("spn", "gcnii"): (Figure(82.01, 0.03), Figure(85.83, 0.04), Figure(97.55, 0.01), Figure(99.41, 0.00)),
}
PPI_F1: dict[tuple[str, str], tuple[Figure, ...]] = {
    ("gnn", "gcn"): (Figure(54.55, 0.29), Figure(56.10, 0.36), Figure(62.48, 0.27), Figure(66.52, 0.89)),
    ("gnn", "sage"): (Figure(67.30, 0.11), Figure(72.93, 0.04), Figure(92.18, 0.05), Figure(97.51, 0.03)),
    ("gnn", "gat"): (Figure(60.72, 0.25), Figure(68.55, 0.30), Figure(93.53, 0.24), Figure(98.06, 0.08)),
    ("gnn", "gcnii"): (Figure(65.79, 0.25), Figure(74.54, 0.14), Figure(95.86, 0.01), Figure(98.97, 0.00)),
    ("spn", "gcn"): (Figure(54.15, 0.17), Figure(55.73, 0.15), Figure(61.36, 0.11), Figure(66.70, 0.77)),
    ("spn", "sage"): (Figure(68.56, 0.07), Figure(74.45, 0.07), Figure(91.99, 0.04), Figure(97.56, 0.03)),
    ("spn", "gat"): (Figure(64.02, 0.40), Figure(72.37, 0.18), Figure(94.41, 0.21), Figure(98.38, 0.10)),
    ("spn", "gcnii"): (Figure(67.80, 0.11), Figure(75.96, 0.05), Figure(95.87, 0.02), Figure(99.02, 0.00)),
}


def ppi_figure(measure: str, method: str, encoder: str, benchmark: str) -> Figure:
    """What the paper reports on PPI: measure "accuracy" or "f1"."""
    return {"accuracy": PPI_ACCURACY, "f1": PPI_F1}[measure][method, encoder][PPI_SETS.index(benchmark)]
