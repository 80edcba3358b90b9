"""Scores of each part of a model against the true labels, as plain numbers."""

import math

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.evaluation._answers import Answers
from accord.evaluation._calibration import expected_calibration_error
from accord.evaluation._metrics import graph_accuracy, micro_f1, node_accuracy

Scores = dict[str, float | None]  # metric -> value, None where the metric is undefined


def score_answers(answers: Answers, unseen: Tensor | None = None) -> dict[str, Scores]:
    """Every metric for every part of a model; tasks are averaged.

    Args:
        answers: predictions of the parts, with true labels.
        unseen: [nodes], True for nodes that occur in no training graph; None if that is not known.
    """
    truth = answers.truth
    if truth is None or not bool((truth >= 0).any()):
        raise GraphError("score_answers: the graphs have no labels to compare with. Give graphs with labels.")
    return {name: _scores(answers, truth, name, unseen) for name in answers.labels}


def _scores(answers: Answers, truth: Tensor, name: str, unseen: Tensor | None) -> Scores:
    labels, probabilities = answers.labels[name], answers.probabilities[name]
    errors = [expected_calibration_error(p, t) for p, t in zip(probabilities, truth, strict=True)]
    scores = {
        "node_accuracy": _mean(node_accuracy(labels, truth)),
        "graph_accuracy": _mean(graph_accuracy(labels, truth, answers.topology)),
        "ece": _mean(torch.tensor(errors)),
    }
    if unseen is not None and bool(unseen.any()) and not bool(unseen.all()):
        scores["unseen_accuracy"] = _mean(node_accuracy(labels[:, unseen], truth[:, unseen]))
    if len(truth) > 1 and probabilities.shape[-1] == 2:
        scores["micro_f1"] = _mean(micro_f1(labels.flatten(), truth.flatten()))
    return scores


def _mean(values: Tensor) -> float | None:
    value = float(values.double().nanmean())
    return round(value, 6) if math.isfinite(value) else None
