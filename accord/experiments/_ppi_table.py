"""The PPI table as Markdown: accuracy, then micro-F1, the paper's figures beside ours."""

from collections.abc import Sequence
from statistics import mean, stdev

from accord.experiments._paper import ppi_figure
from accord.experiments._ppi_result import PPIResult

MEASURES = {"accuracy": "Accuracy", "f1": "Micro-F1"}
HEAD = ["data", "encoder", "seeds", "GNN", "SPN", "SPN, picked", "paper: GNN", "paper: SPN"]


def ppi_table(results: Sequence[PPIResult]) -> str:
    """A table for each measure, a line for each result."""
    return "\n".join(f"## {title}\n\n{_table(results, measure)}\n" for measure, title in MEASURES.items())


def _table(results: Sequence[PPIResult], measure: str) -> str:
    lines = [HEAD, ["---"] * len(HEAD)]
    for result in results:
        gnn = result.scores["gnn"][measure]
        ours = [_cell(gnn), *(_against(result.scores[way][measure], gnn) for way in ("spn", "picked"))]
        paper = [ppi_figure(measure, method, result.encoder, result.benchmark) for method in ("gnn", "spn")]
        theirs = [f"{figure.mean:.1f} ± {figure.deviation:.1f}" for figure in paper]
        seeds = str(len(result.seeds))
        lines.append([result.benchmark, result.encoder, seeds, *ours, *theirs])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cell(values: Sequence[float]) -> str:
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * mean(values):.2f}{spread}"


def _against(values: Sequence[float], gnn: Sequence[float]) -> str:
    gap = mean(values) - mean(gnn)
    return f"{_cell(values)}{' ▲' if gap > 0 else ' ▼' if gap < 0 else ''}"
