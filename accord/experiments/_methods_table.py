"""The table of all methods as Markdown: graph accuracy, then node accuracy, the paper's figures beside ours."""

from collections.abc import Mapping, Sequence
from statistics import mean, stdev

from accord.experiments._paper import SETS, Figure, paper_figure
from accord.experiments._result import Result, Row

TITLES = {"graph": "Graph accuracy", "node": "Node accuracy"}
FAR = 2.0  # of the paper's standard deviations; below that a cell is marked


def methods_table(results: Sequence[Result], rows: Mapping[str, Row]) -> str:
    """Two tables, one for each measure: a line for each row and encoder, two columns for each data set."""
    return "\n".join(f"### {title}\n\n{_table(results, rows, name)}\n" for name, title in TITLES.items())


def _table(results: Sequence[Result], rows: Mapping[str, Row], measure: str) -> str:
    cells = {(result.row, result.encoder, result.benchmark): result.scores[measure] for result in results}
    lines = [["method", "encoder", *(entry for name in SETS for entry in (name, "paper"))]]
    lines.append(["---"] * len(lines[0]))
    for row, what in rows.items():
        for encoder in sorted({key[1] for key in cells if key[0] == row}):
            line = [what.title, encoder]
            for benchmark in SETS:
                paper = paper_figure(measure, what.method, encoder, benchmark) if _in_paper(row, what) else None
                line += [_ours(cells.get((row, encoder, benchmark)), paper), _theirs(paper)]
            lines.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _in_paper(row: str, what: Row) -> bool:
    """Variants of a method are not what the paper's row is."""
    return row in (what.method, "crf-linear")


def _ours(values: Sequence[float] | None, paper: Figure | None) -> str:
    if values is None:
        return "-"
    spread = f" ± {100 * stdev(values):.1f}" if len(values) > 1 else ""
    low = paper is not None and 100 * mean(values) < paper.mean - FAR * paper.deviation
    return f"{100 * mean(values):.1f}{spread}{' ▼' if low else ''}"


def _theirs(paper: Figure | None) -> str:
    return "" if paper is None else f"{paper.mean:.1f} ± {paper.deviation:.1f}"
