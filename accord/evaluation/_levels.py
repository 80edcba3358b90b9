"""Levels: what a model is judged by, on validation data and in `score`. Higher is better at every level.

Scores are one number for each replica [*replicas]; nodes whose true label is missing (-1) do not count.
"""

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.evaluation._metrics import graph_accuracy, micro_f1, node_accuracy
from accord.graphs import Topology

LEVELS = {
    "node": "share of nodes that are right",
    "graph": "share of graphs with every node right",
    "f1": "F1, averaged over the states",
    "likelihood": "mean log-probability of the true labels",
    "auc": "area under the ROC curve, each state against the rest",
}
PROBABILISTIC = ("likelihood", "auc")  # judged by probabilities; the other levels by labels
LEAST_LOG = -30.0  # log-probability that counts for a true label held to be impossible


def check_level(level: object) -> None:
    """Refuse a level of evaluation that does not exist."""
    if not isinstance(level, str) or level not in LEVELS:
        known = ", ".join(f"{name!r} ({meaning})" for name, meaning in LEVELS.items())
        raise OptionError(f"level {level!r} is unknown. Choose one of: {known}.")


def needs_probabilities(level: str) -> bool:
    """Whether a level judges probabilities rather than labels."""
    check_level(level)
    return level in PROBABILISTIC


def level_score(
    level: str, labels: Tensor, truth: Tensor, topology: Topology, log_probabilities: Tensor | None = None
) -> Tensor:
    """The score at a level [*replicas], in double precision.

    Args:
        level: one of `LEVELS`.
        labels: [*replicas, nodes].
        truth: [*replicas, nodes], -1 where a label is missing; broadcasts.
        topology: the graphs.
        log_probabilities: [*replicas, nodes, states]; levels that judge labels do not use them.
    """
    check_level(level)
    if level == "node":
        return node_accuracy(labels, truth)
    if level == "graph":
        return graph_accuracy(labels, truth, topology)
    if level == "f1":
        return macro_f1(labels, truth)
    assert log_probabilities is not None, "this level judges probabilities"
    return (mean_log_likelihood if level == "likelihood" else macro_auc)(log_probabilities, truth)


def pooled_score(
    level: str, labels: Tensor, truth: Tensor, topology: Topology, probabilities: Tensor | None = None
) -> float:
    """One score of all tasks: their mean, where tasks without any true label do not count.

    F1 of several binary tasks is pooled over them (`micro_f1`), as is usual for such data.

    Args:
        level: one of `LEVELS`.
        labels: [tasks, nodes].
        truth: [tasks, nodes], -1 where a label is missing.
        topology: the graphs.
        probabilities: [tasks, nodes, states]; needed at levels that judge probabilities.
    """
    if level == "f1" and len(labels) > 1 and int(torch.maximum(labels.max(), truth.max())) < 2:
        return float(micro_f1(labels.flatten(), truth.flatten()))
    logs = None if probabilities is None else probabilities.double().log()
    return float(level_score(level, labels, truth, topology, logs).nanmean())


def macro_f1(labels: Tensor, truth: Tensor) -> Tensor:
    """F1 of each state, averaged over the states that occur in labels or true labels [*replicas].

    For several binary tasks see `pooled_score`.
    """
    known = (truth >= 0).expand_as(labels)
    truth = truth.expand_as(labels)
    states = int(torch.stack([labels.max(), truth.max()]).max()) + 1 if labels.numel() else 0
    scores = []
    for state in range(max(states, 1)):
        found, true = (labels == state) & known, truth == state
        scores.append(2 * (found & true).sum(-1).double() / (found.sum(-1) + true.sum(-1)))
    return torch.stack(scores).nanmean(0)


def mean_log_likelihood(log_probabilities: Tensor, truth: Tensor) -> Tensor:
    """Mean log-probability of the true labels [*replicas]; NaN if no true label is known.

    Args:
        log_probabilities: [*replicas, nodes, states].
        truth: [*replicas, nodes]; broadcasts.
    """
    truth = truth.expand(log_probabilities.shape[:-1])
    logs = log_probabilities.gather(-1, truth.clamp_min(0)[..., None])[..., 0].double().clamp_min(LEAST_LOG)
    known = truth >= 0
    return logs.masked_fill(~known, 0.0).sum(-1) / known.sum(-1)


def macro_auc(scores: Tensor, truth: Tensor) -> Tensor:
    """Area under the ROC curve of each state against the rest, averaged over the states that can be compared.

    Args:
        scores: [*replicas, nodes, states]; only their order matters.
        truth: [*replicas, nodes]; broadcasts.

    Returns:
        [*replicas]; NaN where no state has nodes on both sides.
    """
    truth = truth.expand(scores.shape[:-1])
    rows = zip(scores.reshape(-1, *scores.shape[-2:]), truth.reshape(-1, truth.shape[-1]), strict=True)
    found = [_auc(values[true >= 0], true[true >= 0]) for values, true in rows]
    return torch.stack(found).view(scores.shape[:-2])


def _auc(scores: Tensor, truth: Tensor) -> Tensor:
    """By the ranks of the nodes of each state (Mann-Whitney); equal scores share their ranks."""
    columns = scores.t().contiguous()
    ordered = columns.sort(-1).values
    below = torch.searchsorted(ordered, columns).double()
    ranks = (below + torch.searchsorted(ordered, columns, right=True) + 1) / 2
    own = truth == torch.arange(len(columns), device=truth.device)[:, None]
    count = own.sum(-1).double()
    above = (ranks * own).sum(-1) - count * (count + 1) / 2
    return (above / (count * (len(truth) - count))).nanmean()
