"""Cells: the units of work behind the paper's tables and figures, and which number each of them fills.

One training of an SPN gives the GNN's numbers too, since they share the node network, and graph and node accuracy, so
a cell usually fills several numbers of the paper.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from accord.experiments._paper import CITATION_SETS, PPI_SETS, RESULT_TABLES, PaperNumber, paper_numbers

PRESET_ORDER = ("authors", "paper", "accord")  # what is run first
OTHER_WIDTH = {"authors": "width 2048", "paper": "width 256"}  # of GCNII: each is what the other preset has
WIDTHS = ("", *sorted(OTHER_WIDTH.values()))
DBLP_STAND_IN = "citation-domains"  # the set that is run where the paper has its DBLP, under its own name
GMNN_ENCODER = "gat"  # the paper names none
NUM_LABELS = 121  # of PPI
TRAINING, ABLATION, OVERLAP, STATISTICS = "training", "ablation", "overlap", "statistics"
RUN_TIME, CONVERGENCE, CASE, HEADS, BACKBONES = "run-time", "convergence", "case", "heads", "backbones"
SEARCH = "search"
RATES = ("1e-05", "0.001")  # of the maximin game in Figure 2: the paper's, and one at which it moves
HEAD_COUNTS = (1, 2, 4, 8)
BACKBONE_ENCODERS = ("gcn", "sage", "gat", "gcnii")
Block = tuple[int, int]  # the labels from the first number up to, but not including, the second


@dataclass(frozen=True, order=True)
class Cell:
    """A unit of work; with a seed and a block of labels, a record.

    Attributes:
        experiment: "training", or the name of a study.
        data: name of the benchmark.
        method: "spn", "gnn", "crf" or "gmnn"; "-" for studies of data alone.
        encoder: of the node network; where the edge network has another, both, as "gat+sage".
        preset: name of the preset.
        variant: what differs from the preset: "refined", "shared", "constrained", "width 256", ...
    """

    experiment: str
    data: str
    method: str = "spn"
    encoder: str = "-"
    preset: str = "-"
    variant: str = ""

    @property
    def key(self) -> str:
        """Its name in the store."""
        parts = (self.experiment, self.preset, self.data, self.method, self.encoder, self.variant)
        return "/".join(parts).rstrip("/")

    @property
    def num_labels(self) -> int:
        """Labels per node that are trained: all of PPI's, except in studies of its first label."""
        return NUM_LABELS if self.data in PPI_SETS and self.experiment == TRAINING else 1

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the paper: ten on citation sets, five elsewhere."""
        if self.experiment in (STATISTICS, OVERLAP, RUN_TIME, CASE, SEARCH):
            return (1,)
        return tuple(range(1, 11)) if self.data in CITATION_SETS and self.experiment == TRAINING else (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Source:
    """Where a number of ours comes from: a cell, a way to label with what was trained there, a measure."""

    cell: Cell
    way: str
    measure: str


def source_of(number: PaperNumber, preset: str) -> Source | None:
    """What fills a number of the paper under a preset; None for tables of settings, and where the preset has no recipe.

    The appendix has no learning rate for U-Net on DBLP, though Table 2 has its score.
    """
    data = DBLP_STAND_IN if number.data == "dblp" else number.data
    if (preset, data, number.encoder) == ("paper", DBLP_STAND_IN, "unet"):
        return None
    if number.table == 8:
        return Source(Cell(STATISTICS, data, "-"), "data", number.measure)
    if number.table == 3:
        return Source(Cell(RUN_TIME, data, "spn", "gat", preset), number.method, "seconds")
    if number.table not in RESULT_TABLES:
        return None
    encoder = number.encoder or GMNN_ENCODER
    if number.method == "gnn" and encoder == "unet" and data in PPI_SETS:  # the paper has no SPN with it there
        return Source(Cell(TRAINING, data, "gnn", encoder, preset), "gnn", number.measure)
    method = "spn" if number.method == "gnn" else number.method
    variant = "" if number.variant == "sum" else number.variant
    way = "sum" if number.variant == "sum" else number.method
    return Source(Cell(TRAINING, data, method, encoder, preset, variant), way, number.measure)


def paper_cells(preset: str, table: int) -> tuple[Cell, ...]:
    """The cells that are run to fill a table under a preset.

    Preset `authors` fills all tables. The paper's letter differs where networks become a field, so only SPNs are run
    with it, in the main tables. Preset `accord` is for the citation sets.
    """
    if (preset == "paper" and table not in (1, 2, 12)) or (preset == "accord" and table not in (2, 12)):
        return ()
    sources = (source_of(number, preset) for number in paper_numbers() if number.table == table)
    cells = _unique(source.cell for source in sources if source is not None)
    return tuple(cell for cell in cells if preset != "paper" or cell.method == "spn")


def figure_cells(figure: int, preset: str) -> tuple[Cell, ...]:
    """The cells of a figure; Figure 1 is a drawing, Figure 5 is drawn from the ablation."""
    if figure == 2:
        return tuple(
            Cell(CONVERGENCE, data, "spn", "gat", preset, f"rate {rate}")
            for data in (DBLP_STAND_IN, "cora*")
            for rate in RATES
        )
    if figure == 3:
        return (Cell(CASE, "cora*", "spn", "gat", preset),)
    if figure == 4:
        heads = [Cell(HEADS, "ppi-1", "spn", "gat", preset, f"{part} {n}") for part in PARTS for n in HEAD_COUNTS]
        pairs = [
            Cell(BACKBONES, "ppi-1", "spn", f"{node}+{edge}", preset)
            for node in BACKBONE_ENCODERS
            for edge in BACKBONE_ENCODERS
        ]
        return (*heads, *pairs)
    return ablation_cells(preset, (*CITATION_SETS[:1], DBLP_STAND_IN), ("gat",)) if figure == 5 else ()


def is_in_figure_5(cell: Cell) -> bool:
    """Whether Figure 5 is drawn from the ablation of this training."""
    return cell.preset == PRESET_ORDER[0] and cell in figure_cells(5, PRESET_ORDER[0])


PARTS = ("node", "edge")  # whose heads are varied in Figure 4, the other's are fixed
ABLATED_ENCODERS = ("gcn", "sage", "gat", "unet", "gcnii")


def ablation_cells(
    preset: str, sets: tuple[str, ...] = CITATION_SETS, encoders: tuple[str, ...] = ABLATED_ENCODERS
) -> tuple[Cell, ...]:
    """The trainings whose networks are combined in every way."""
    return tuple(Cell(TRAINING, data, "spn", encoder, preset) for data in sets for encoder in encoders)


def width_cells() -> tuple[Cell, ...]:
    """GCNII at the other width: the paper says 2,048 channels, and the authors' code builds 256."""
    return tuple(
        Cell(TRAINING, data, "spn", "gcnii", preset, variant)
        for data in CITATION_SETS
        for preset, variant in OTHER_WIDTH.items()
    )


@cache
def targets() -> dict[str, tuple[Cell, ...]]:
    """What can be asked for by name, with the cells behind it."""
    found: dict[str, tuple[Cell, ...]] = {}
    for table in (*RESULT_TABLES, 8):
        found[f"table-{table}"] = _unique(cell for preset in PRESET_ORDER for cell in paper_cells(preset, table))
    for figure in (2, 3, 4, 5):
        found[f"figure-{figure}"] = figure_cells(figure, "authors")
    found["ablation"] = _unique(cell for preset in PRESET_ORDER for cell in ablation_cells(preset))
    found["fair"] = tuple(Cell(OVERLAP, data, "-") for data in CITATION_SETS)
    found["width"] = width_cells()
    found["all"] = _unique(cell for cells in list(found.values()) for cell in cells)
    return found


def _unique(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return tuple(dict.fromkeys(cells))
