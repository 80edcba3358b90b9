"""The paper's numbers: every cell of Tables 1 to 13 as data, read from paper.tsv, and look-ups in them.

The file was parsed from the paper's source, not typed. Scores are in percent, with standard deviations over seeds (ten
on citation sets, five on PPI and DBLP); Table 3 is in seconds, Table 8 holds sizes, Tables 9 to 11 settings.
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

CITATION_SETS = ("cora*", "citeseer*", "pubmed*")
PPI_SETS = ("ppi-1", "ppi-2", "ppi-10", "ppi-20")
RESULT_TABLES = (1, 2, 3, 4, 5, 6, 7, 12, 13)  # the others hold statistics of data and settings
NONE = "-"  # in the file: the paper names no encoder, or gives no deviation


class PaperScore(NamedTuple):
    """Mean and standard deviation over seeds: ten on citation sets, five on PPI."""

    mean: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.deviation:.1f}"


@dataclass(frozen=True)
class PaperNumber:
    """One cell of one table."""

    table: int
    row: str  # as printed
    method: str  # "gnn", "crf", "gmnn", "spn"; "-" in tables that compare no methods
    encoder: str | None  # None where the paper names none
    variant: str  # "refined", "shared", "constrained", "sum", or ""
    data: str
    measure: str
    mean: float
    deviation: float | None


@cache
def paper_numbers() -> tuple[PaperNumber, ...]:
    """Every number of the paper's tables, in the order of the paper."""
    text = resources.files("accord.experiments").joinpath("paper.tsv").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return tuple(
        PaperNumber(
            table=int(row["table"]),
            row=row["row"],
            method=row["method"],
            encoder=None if row["encoder"] == NONE else row["encoder"],
            variant="" if row["variant"] == NONE else row["variant"],
            data=row["data"],
            measure=row["measure"],
            mean=float(row["mean"]),
            deviation=None if row["deviation"] == NONE else float(row["deviation"]),
        )
        for row in csv.DictReader(lines, delimiter="\t")
    )


@cache
def _main_scores() -> dict[tuple[str, str, str | None, str], PaperScore]:
    """Scores of the main tables (1, 2 and 12) by measure, method, encoder and data."""
    return {
        (number.measure, number.method, number.encoder, number.data): PaperScore(number.mean, number.deviation)
        for number in paper_numbers()
        if number.table in (1, 2, 12) and number.deviation is not None
    }


def paper_score(measure: str, method: str, encoder: str, benchmark: str) -> PaperScore | None:
    """The paper's score on a citation set, or None where it has none; its GMNN names no encoder."""
    if benchmark not in CITATION_SETS:
        return None
    scores = _main_scores()
    return scores.get((measure, method, encoder, benchmark), scores.get((measure, method, None, benchmark)))


def paper_ppi_score(measure: str, method: str, encoder: str, benchmark: str) -> PaperScore:
    """The paper's score on PPI; the measure is "accuracy" or "f1"."""
    return _main_scores()[measure, method, encoder, benchmark]
