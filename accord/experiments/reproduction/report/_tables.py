"""The paper's tables with ours beside: a line of the paper's, and one for each of our presets that has a result."""

from collections.abc import Iterator
from dataclasses import dataclass

from accord.experiments._paper import PPI_SETS, RESULT_TABLES, PaperNumber, paper_numbers
from accord.experiments.reproduction._cells import DBLP_STAND_IN, source_of
from accord.experiments.reproduction._results import Results, Summary

PRESETS = {  # in the order of the lines of a table
    "authors": "preset authors",
    "paper": "preset paper (Eq. 5)",
    "accord": "preset accord",
    "appendix": "appendix, own sums",
    "picked": "appendix, picked on validation",
}
TITLES = {
    1: "PPI: accuracy and micro-F1",
    2: "Citation sets: graph accuracy; DBLP: node accuracy",
    3: "Run time in seconds, 1,000 epochs, one label",
    4: "Refinement: micro-F1 on PPI",
    5: "Learning methods with GAT: graph accuracy, micro-F1 on PPI-10",
    6: "A shared GNN: micro-F1 on PPI",
    7: "Constrained optimisation: graph accuracy",
    8: "Sizes of the data sets",
    12: "Citation sets: node accuracy",
    13: "Sum- and max-product: micro-F1 on PPI-10",
}
NOTES = {
    1: "The labels of PPI here are rebuilt, so ours show the pattern and are not comparable number by number.",
    2: f"Our column beside DBLP is {DBLP_STAND_IN}, a set of another name and other data: compare the pattern only.",
    3: "Ours are extrapolated from short runs without evaluations. crf-plain: messages in plain torch operations.",
    5: "The paper's proxy entry on PPI-10 is the figure of GCNII, not GAT's.",
    7: "The paper's line without the constraint repeats its maximin line, so neither can be SPN-GAT's.",
    8: f"Beside DBLP: {DBLP_STAND_IN}. Nodes and edges are averages over graphs.",
}
GIVEN = "given"  # a line of the paper's
FAR = 2.0  # of the paper's standard deviations; further cells are marked
Place = tuple[str, str]  # data and measure: a column


@dataclass(frozen=True)
class Line:
    """A line of a table."""

    title: str
    whose: str  # GIVEN, or a preset
    cells: tuple[str, ...]


def table_lines(results: Results, table: int) -> tuple[list[str], list[Line]]:
    """Titles of the columns, and the lines of a table."""
    numbers = [number for number in paper_numbers() if number.table == table]
    places = list(dict.fromkeys(_place(number) for number in numbers))
    lines = []
    for row in dict.fromkeys(number.row for number in numbers):
        own = {_place(n): n for n in numbers if n.row == row}
        lines.append(Line(row, GIVEN, tuple(show_paper(own[p]) if p in own else "" for p in places)))
        for preset in PRESETS:
            found = {place: _summary(results, number, preset) for place, number in own.items()}
            if any(found.values()) and (table != 8 or preset == "authors"):
                cells = tuple(show_ours(found.get(place), own.get(place), preset) for place in places)
                lines.append(Line("" if table == 8 else PRESETS[preset], preset, cells))
    return [_column(place, places) for place in places], lines


def _summary(results: Results, number: PaperNumber, preset: str) -> Summary | None:
    source = source_of(number, preset)
    return None if source is None else results.summary(source)


def _place(number: PaperNumber) -> Place:
    """Its column; the rows of Table 8 are data sets."""
    return ("", number.measure) if number.table == 8 else (number.data, number.measure)


def _column(place: Place, places: list[Place]) -> str:
    data, measure = place
    several = len({m for d, m in places if d == data}) > 1
    return f"{data} {measure}".strip() if several else data


def show_paper(number: PaperNumber) -> str:
    """A number as the paper prints it."""
    spread = "" if number.deviation is None else f" ± {number.deviation:.2f}"
    return f"{number.mean:g}{spread}" if number.table in (3, 8) else f"{number.mean:.2f}{spread}"


def show_ours(summary: Summary | None, number: PaperNumber | None, preset: str) -> str:
    """Mean, deviation and number of seeds; marked if far from the paper's, or if training was shortened."""
    if summary is None or number is None:
        return ""
    if number.table in (3, 8):
        return f"{summary.mean:,.1f}"
    spread = "" if summary.deviation is None else f" ± {100 * summary.deviation:.2f}"
    return f"{100 * summary.mean:.2f}{spread} ({len(summary.values)}){_mark(summary, number, preset)}"


def _mark(summary: Summary, number: PaperNumber, preset: str) -> str:
    short = "°" if summary.shortened else ""
    if preset != "authors" or not is_comparable(number):
        return short
    gap = distance(summary, number)
    return short + (" ▼" if gap < -FAR else " ▲" if gap > FAR else "")


def is_comparable(number: PaperNumber) -> bool:
    """Whether ours is on the same data: not with rebuilt labels, and not on another set."""
    return number.data not in PPI_SETS and number.data != "dblp" and number.deviation is not None


def distance(summary: Summary, number: PaperNumber) -> float:
    """How far ours is above the paper's, in its standard deviations."""
    assert number.deviation is not None
    return (100 * summary.mean - number.mean) / max(number.deviation, 0.01)


def filled(results: Results, preset: str) -> list[tuple[PaperNumber, Summary]]:
    """Numbers of the paper's result tables with a result of ours beside them, whole trainings only."""
    found = []
    for number in paper_numbers():
        if number.table in RESULT_TABLES:
            summary = _summary(results, number, preset)
            if summary is not None and not summary.shortened:
                found.append((number, summary))
    return found


def closeness(results: Results, preset: str = "authors") -> Iterator[tuple[PaperNumber, Summary, float]]:
    """Citation cells of Tables 2 and 12 with how far ours is from the paper's."""
    for number, summary in filled(results, preset):
        if number.table in (2, 12) and is_comparable(number):
            yield number, summary, distance(summary, number)
