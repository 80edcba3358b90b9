"""How models are ranked on validation data: by the metric of the level, and among equals by node accuracy.

On hard data no graph is labelled correctly throughout for many epochs; node accuracy then tells models apart.
"""

import torch
from torch import Tensor

from accord.evaluation import metric_for, node_accuracy
from accord.graphs import Topology

LARGEST_SCORE = 1e6  # nats; a network with larger scores has diverged, whatever its loss is
TIE = 1e-7  # weight of node accuracy, far below the change of the metric by one graph


def rank(labels: Tensor, targets: Tensor, topology: Topology, level: str) -> Tensor:
    """One number for each replica, higher is better: [*replicas].

    Args:
        labels: [*replicas, nodes].
        targets: [*replicas, nodes], the true labels; -1 where they are missing.
        topology: the graphs.
        level: "node" or "graph".
    """
    score = metric_for(level)(labels, targets, topology).double()
    return score if level == "node" else score + TIE * node_accuracy(labels, targets).double()


def within_bounds(scores: Tensor) -> Tensor:
    """Replicas whose scores [R, ...] are all finite and not too large [R]."""
    return (scores.detach().flatten(1).abs() <= LARGEST_SCORE).all(1)


def rank_logits(logits: Tensor, targets: Tensor, topology: Topology, level: str) -> Tensor:
    """Rank of the labels that are best by logits [R, nodes, states]; a network that has diverged ranks lowest."""
    return torch.where(within_bounds(logits), rank(logits.argmax(-1), targets, topology, level), -torch.inf)
