"""Scores of each part of a model against known labels, as plain numbers."""

import math
from collections.abc import Mapping

import numpy as np
import torch
from rich.table import Table
from torch import Tensor

from accord.app.labelling import JOINT, TITLES, Labelled
from accord.errors import GraphError
from accord.evaluation import expected_calibration_error, graph_accuracy, micro_f1, node_accuracy

BINS = 10  # of the reliability diagram
Scores = dict[str, float | None]
METRIC_TITLES = {
    "node_accuracy": "node accuracy",
    "unseen_accuracy": "unseen nodes",
    "graph_accuracy": "graph accuracy",
    "micro_f1": "micro-F1",
    "ece": "calibration error",
}


def score_parts(labelled: Labelled, unseen: Tensor | None = None) -> dict[str, Scores]:
    """Every metric for every part of the model; tasks are averaged.

    Args:
        labelled: what the parts say.
        unseen: [nodes], which nodes occur in no training graph; None where that is not known.
    """
    truth = labelled.truth
    if truth is None or not bool((truth >= 0).any()):
        raise GraphError("The graphs have no labels to compare with. Give graphs with labels, or use `accord predict`.")
    return {name: _scores(labelled, truth, name, unseen) for name in labelled.labels}


def _scores(labelled: Labelled, truth: Tensor, name: str, unseen: Tensor | None) -> Scores:
    labels, probabilities = labelled.labels[name], labelled.probabilities[name]
    scores = {
        "node_accuracy": _mean(node_accuracy(labels, truth)),
        "graph_accuracy": _mean(graph_accuracy(labels, truth, labelled.topology)),
        "ece": _mean(
            torch.tensor([expected_calibration_error(p, t) for p, t in zip(probabilities, truth, strict=True)])
        ),
    }
    if unseen is not None and bool(unseen.any()) and not bool(unseen.all()):
        scores["unseen_accuracy"] = _mean(node_accuracy(labels[:, unseen], truth[:, unseen]))
    if len(truth) > 1 and probabilities.shape[-1] == 2:
        scores["micro_f1"] = _mean(micro_f1(labels.flatten(), truth.flatten()))
    return scores


def _mean(values: Tensor) -> float | None:
    value = float(values.double().nanmean())
    return round(value, 6) if math.isfinite(value) else None


def reliability(labelled: Labelled) -> dict[str, dict[str, list[float]]]:
    """For each part: confidence, accuracy and number of nodes in equal bins of confidence; empty bins left out."""
    assert labelled.truth is not None  # scored before
    known = labelled.truth.flatten() >= 0
    found = {}
    for name, probabilities in labelled.probabilities.items():
        confidence, choice = probabilities.flatten(0, 1)[known].max(-1)
        right = (choice == labelled.truth.flatten()[known]).double().numpy()
        place = np.minimum((confidence.double().numpy() * BINS).astype(int), BINS - 1)
        count = np.bincount(place, minlength=BINS)
        full = count > 0
        found[name] = {
            "confidence": _ratio(np.bincount(place, confidence.double().numpy(), BINS), count, full),
            "accuracy": _ratio(np.bincount(place, right, BINS), count, full),
            "nodes": count[full].tolist(),
        }
    return found


def _ratio(total: np.ndarray, count: np.ndarray, full: np.ndarray) -> list[float]:
    ratio: list[float] = (total[full] / count[full]).tolist()
    return ratio


def score_rows(scores: dict[str, Scores], titles: Mapping[str, str] | None = None) -> tuple[list[str], list[list[str]]]:
    """Column titles, and for each part a row of text; metrics that nobody has are left out.

    Args:
        scores: of each part.
        titles: of parts, where they are not the usual ones.
    """
    called = TITLES | dict(titles or {})
    metrics = [metric for metric in METRIC_TITLES if any(part.get(metric) is not None for part in scores.values())]
    rows = []
    for name, part in scores.items():
        rows.append([called.get(name, name), *(format_score(metric, part.get(metric)) for metric in metrics)])
    return [METRIC_TITLES[metric] for metric in metrics], rows


def format_score(metric: str, value: float | None) -> str:
    """Accuracies in percent; calibration errors as fractions."""
    if value is None:
        return "-"
    return f"{value:.3f}" if metric in ("ece", "micro_f1") else f"{100 * value:.1f} %"


def score_table(scores: dict[str, Scores], title: str, titles: Mapping[str, str] | None = None) -> Table:
    """Scores for the terminal."""
    columns, rows = score_rows(scores, titles)
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in zip(scores, rows, strict=True):
        table.add_row(*row, style="bold" if name in JOINT else None)
    return table
