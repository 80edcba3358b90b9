"""The paper's scores in percent: PPI (Table 1), citation sets (graph accuracy Table 2, node accuracy Table 12)."""

from typing import NamedTuple

CITATION_SETS = ("cora*", "citeseer*", "pubmed*")


class PaperScore(NamedTuple):
    """Mean and standard deviation over seeds: ten on citation sets, five on PPI."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.deviation:.1f}"


# Lines by method and encoder; the paper's GMNN names no encoder. Cells in the order of CITATION_SETS.
GRAPH: dict[tuple[str, str | None], tuple[tuple[float, float], ...]] = {
    ("gnn", "gcn"): ((57.26, 0.66), (46.24, 0.61), (51.84, 0.45)),
    ("gnn", "sage"): ((49.02, 2.37), (41.32, 2.41), (48.61, 1.28)),
    ("gnn", "gat"): ((51.99, 3.51), (47.94, 0.46), (50.89, 0.52)),
    ("gnn", "unet"): ((56.07, 0.57), (45.91, 1.65), (51.77, 0.97)),
    ("gnn", "gcnii"): ((59.15, 0.67), (46.39, 0.92), (53.54, 0.98)),
    ("crf", "linear"): ((42.78, 3.94), (40.60, 0.81), (43.90, 2.91)),
    ("crf", "gat"): ((49.10, 3.80), (42.89, 1.30), (47.79, 1.33)),
    ("crf", "unet"): ((53.49, 2.47), (43.66, 2.12), (50.02, 0.88)),
    ("crf", "gcnii"): ((36.18, 5.75), (38.27, 4.82), (41.71, 4.79)),
    ("gmnn", None): ((54.30, 1.15), (48.46, 1.06), (51.70, 1.23)),
    ("spn", "gat"): ((58.78, 1.21), (49.02, 0.78), (52.91, 0.54)),
    ("spn", "unet"): ((58.03, 0.54), (46.97, 1.06), (53.36, 0.67)),
    ("spn", "gcnii"): ((60.47, 0.49), (48.34, 0.50), (54.35, 0.64)),
}
NODE: dict[tuple[str, str | None], tuple[tuple[float, float], ...]] = {
    ("gnn", "gcn"): ((79.85, 0.24), (72.25, 0.71), (78.05, 0.55)),
    ("gnn", "sage"): ((73.43, 1.67), (62.48, 2.19), (73.99, 1.26)),
    ("gnn", "gat"): ((79.65, 1.25), (74.15, 0.12), (78.62, 0.52)),
    ("gnn", "unet"): ((78.72, 0.63), (71.36, 1.37), (77.93, 0.60)),
    ("gnn", "gcnii"): ((82.84, 0.37), (72.61, 0.49), (79.47, 0.55)),
    ("crf", "linear"): ((68.47, 2.13), (65.88, 0.85), (65.93, 2.18)),
    ("crf", "gat"): ((77.75, 1.24), (69.13, 1.10), (75.96, 1.06)),
    ("crf", "unet"): ((78.32, 1.51), (70.78, 1.15), (77.91, 0.56)),
    ("crf", "gcnii"): ((35.98, 7.40), (33.73, 5.87), (60.55, 4.17)),
    ("gmnn", None): ((79.90, 0.93), (72.18, 0.48), (78.00, 1.04)),
    ("spn", "gat"): ((83.13, 0.48), (74.50, 0.36), (79.23, 0.33)),
    ("spn", "unet"): ((81.11, 0.55), (72.28, 0.94), (78.70, 0.37)),
    ("spn", "gcnii"): ((83.54, 0.27), (74.04, 0.29), (79.95, 0.38)),
}
CITATION = {"graph": GRAPH, "node": NODE}


def paper_score(measure: str, method: str, encoder: str, benchmark: str) -> PaperScore | None:
    """The paper's score on a citation set, or None where it has none."""
    table = CITATION[measure]
    line = table.get((method, encoder), table.get((method, None)))
    return None if line is None or benchmark not in CITATION_SETS else PaperScore(*line[CITATION_SETS.index(benchmark)])


PPI_SETS = ("ppi-1", "ppi-2", "ppi-10", "ppi-20")
# Lines by method and encoder; cells in the order of PPI_SETS.
PPI_ACCURACY: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {
    ("gnn", "gcn"): ((76.62, 0.10), (77.48, 0.12), (80.43, 0.10), (82.28, 0.24)),
    ("gnn", "sage"): ((81.02, 0.07), (84.13, 0.04), (95.34, 0.03), (98.51, 0.02)),
    ("gnn", "gat"): ((77.49, 0.20), (81.35, 0.19), (96.14, 0.15), (98.85, 0.05)),
    ("gnn", "gcnii"): ((80.99, 0.07), (84.81, 0.06), (97.53, 0.01), (99.39, 0.00)),
    ("spn", "gcn"): ((77.07, 0.05), (78.02, 0.05), (80.59, 0.04), (82.56, 0.20)),
    ("spn", "sage"): ((82.11, 0.03), (85.40, 0.05), (95.28, 0.02), (98.55, 0.02)),
    ("spn", "gat"): ((79.01, 0.17), (83.55, 0.12), (96.68, 0.13), (99.04, 0.06)),
    ("spn", "gcnii"): ((82.01, 0.03), (85.83, 0.04), (97.55, 0.01), (99.41, 0.00)),
}
PPI_F1: dict[tuple[str, str], tuple[tuple[float, float], ...]] = {
    ("gnn", "gcn"): ((54.55, 0.29), (56.10, 0.36), (62.48, 0.27), (66.52, 0.89)),
    ("gnn", "sage"): ((67.30, 0.11), (72.93, 0.04), (92.18, 0.05), (97.51, 0.03)),
    ("gnn", "gat"): ((60.72, 0.25), (68.55, 0.30), (93.53, 0.24), (98.06, 0.08)),
    ("gnn", "gcnii"): ((65.79, 0.25), (74.54, 0.14), (95.86, 0.01), (98.97, 0.00)),
    ("spn", "gcn"): ((54.15, 0.17), (55.73, 0.15), (61.36, 0.11), (66.70, 0.77)),
    ("spn", "sage"): ((68.56, 0.07), (74.45, 0.07), (91.99, 0.04), (97.56, 0.03)),
    ("spn", "gat"): ((64.02, 0.40), (72.37, 0.18), (94.41, 0.21), (98.38, 0.10)),
    ("spn", "gcnii"): ((67.80, 0.11), (75.96, 0.05), (95.87, 0.02), (99.02, 0.00)),
}


def paper_ppi_score(measure: str, method: str, encoder: str, benchmark: str) -> PaperScore:
    """The paper's score on PPI; the measure is "accuracy" or "f1"."""
    table = {"accuracy": PPI_ACCURACY, "f1": PPI_F1}[measure]
    return PaperScore(*table[method, encoder][PPI_SETS.index(benchmark)])
