"""What is ranked by on validation data: the metric asked for, and among equals node accuracy.

The share of graphs that are right throughout stays 0 for long on hard data; node accuracy tells such models apart.
"""

import torch
from torch import Tensor

from accord.evaluation import metric_for, node_accuracy
from accord.graphs import Topology

LARGEST_SCORE = 1e6  # nats; a network whose scores are beyond has diverged, whatever its loss says
TIE = 1e-7  # weight of node accuracy; the metric moves in steps of one graph or node, far above it


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
    """Replicas whose scores [R, ...] are all finite and of a sound size [R]."""
    return (scores.detach().flatten(1).abs() <= LARGEST_SCORE).all(1)


def rank_logits(logits: Tensor, targets: Tensor, topology: Topology, level: str) -> Tensor:
    """Rank of each node's best state by logits [R, nodes, states]; a network that has diverged ranks below any."""
    return torch.where(within_bounds(logits), rank(logits.argmax(-1), targets, topology, level), -torch.inf)
