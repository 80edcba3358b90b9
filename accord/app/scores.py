"""Scores of the parts of a model as tables, and the titles of parts and metrics."""

from collections.abc import Mapping

from rich.markup import escape
from rich.table import Table

from accord.evaluation import EDGE, NODE, Scores

JOINT_TITLES = {"spn": "SPN", "crf": "CRF", "gmnn": "GMNN", "smooth": "smoothed GNN"}  # whole models, by method
PART_TITLES = {NODE: "GNN", EDGE: "edge GNN", **JOINT_TITLES}
CRF_PART_TITLES = {
    NODE: "node scores alone",
    EDGE: "edge scores alone",
}  # parts of a CRF are not trained to label alone
METRIC_TITLES = {
    "node_accuracy": "node accuracy",
    "unseen_accuracy": "unseen nodes",
    "graph_accuracy": "graph accuracy",
    "micro_f1": "micro-F1",
    "entity_precision": "entity precision",
    "entity_recall": "entity recall",
    "entity_f1": "entity F1",
    "ece": "calibration error",
}


def part_titles(method: str) -> dict[str, str]:
    """Titles of the parts of a model of this method."""
    return PART_TITLES | (CRF_PART_TITLES if method == "crf" else {})


def score_rows(scores: Mapping[str, Scores], titles: Mapping[str, str]) -> tuple[list[str], list[list[str]]]:
    """Column titles, and one row of text for each part; metrics that no part has are left out."""
    metrics = [metric for metric in METRIC_TITLES if any(part.get(metric) is not None for part in scores.values())]
    rows = []
    for name, part in scores.items():
        rows.append([titles.get(name, name), *(format_score(metric, part.get(metric)) for metric in metrics)])
    return [METRIC_TITLES[metric] for metric in metrics], rows


def format_score(metric: str, value: float | None) -> str:
    """Accuracies in percent; calibration errors and F1 as fractions; "-" for an undefined score."""
    if value is None:
        return "-"
    return f"{value:.3f}" if metric in ("ece", "micro_f1") else f"{100 * value:.1f} %"


def score_table(scores: Mapping[str, Scores], title: str, titles: Mapping[str, str]) -> Table:
    """A table of scores for the terminal, with the whole model in bold."""
    columns, rows = score_rows(scores, titles)
    table = Table(title=escape(title), title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in zip(scores, rows, strict=True):
        table.add_row(*map(escape, row), style="bold" if name in JOINT_TITLES else None)
    return table
