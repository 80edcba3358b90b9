"""Scores of each part of a model against the true labels, as plain numbers."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.evaluation._answers import Answers
from accord.evaluation._calibration import expected_calibration_error
from accord.evaluation._entities import OUTSIDE, entity_scores
from accord.evaluation._metrics import graph_accuracy, micro_f1, node_accuracy
from accord.field._transitions import is_bio
from accord.graphs import Topology

Scores = dict[str, float | None]  # metric -> value, None where the metric is undefined


def score_answers(
    answers: Answers, unseen: Tensor | None = None, names: Sequence[str] | None = None
) -> dict[str, Scores]:
    """Every metric for every part of a model; tasks are averaged.

    Args:
        answers: predictions of the parts, with true labels.
        unseen: [nodes], True for nodes that occur in no training graph; None if that is not known.
        names: of the states. If they are of the BIO scheme, entities are counted too.
    """
    truth = answers.truth
    if truth is None or not bool((truth >= 0).any()):
        raise GraphError("score_answers: the graphs have no labels to compare with. Give graphs with labels.")
    scores = {name: _scores(answers, truth, name, unseen) for name in answers.labels}
    if names is not None and len(truth) == 1 and is_bio(names):
        for name, own in scores.items():
            own |= _entity_scores(answers.labels[name][0], truth[0], answers.topology, names)
    return scores


def _entity_scores(labels: Tensor, truth: Tensor, topology: Topology, names: Sequence[str]) -> Scores:
    """Precision, recall and F1 of entities; where a true label is missing, both are outside of entities."""
    sizes = torch.bincount(topology.graph, minlength=topology.num_graphs).tolist()
    listed = [*names, OUTSIDE]  # the last one is for -1
    ours, theirs = (
        [[listed[state] for state in own.tolist()] for own in values.split(sizes)]
        for values in (labels.masked_fill(truth < 0, -1), truth)
    )
    found = entity_scores(ours, theirs)
    values = {"precision": found.precision, "recall": found.recall, "f1": found.f1}
    return {f"entity_{name}": round(value, 6) for name, value in values.items()}


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
