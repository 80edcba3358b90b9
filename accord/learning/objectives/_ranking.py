"""How models are ranked on validation data: by their score at the level, and among equals by node accuracy.

On hard data no graph is labelled correctly throughout for many epochs; node accuracy then tells models apart.
"""

import torch
from torch import Tensor

from accord.evaluation import level_score, needs_probabilities, node_accuracy
from accord.graphs import Topology

LARGEST_SCORE = 1e6  # nats; a network with larger scores has diverged, whatever its loss is
TIE = 1e-7  # weight of node accuracy, far below the change of the metric by one graph


def rank(
    labels: Tensor, targets: Tensor, topology: Topology, level: str, log_probabilities: Tensor | None = None
) -> Tensor:
    """One number for each replica, higher is better: [*replicas].

    Args:
        labels: [*replicas, nodes].
        targets: [*replicas, nodes], the true labels; -1 where they are missing.
        topology: the graphs.
        level: one of `accord.evaluation.LEVELS`.
        log_probabilities: [*replicas, nodes, states]; needed at levels that judge probabilities.
    """
    score = level_score(level, labels, targets, topology, log_probabilities)
    return score if level == "node" else score + TIE * node_accuracy(labels, targets).double()


def within_bounds(scores: Tensor) -> Tensor:
    """Replicas whose scores [R, ...] are all finite and not too large [R]."""
    return (scores.detach().flatten(1).abs() <= LARGEST_SCORE).all(1)


def rank_logits(logits: Tensor, targets: Tensor, topology: Topology, level: str) -> Tensor:
    """Rank of the labels that are best by logits [R, nodes, states]; a network that has diverged ranks lowest."""
    logs = logits.log_softmax(-1) if needs_probabilities(level) else None
    return torch.where(within_bounds(logits), rank(logits.argmax(-1), targets, topology, level, logs), -torch.inf)
