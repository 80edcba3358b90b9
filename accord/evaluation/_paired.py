"""Whether one model's answers are better than another's beyond noise, compared on the same graphs."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.evaluation._levels import pooled_score
from accord.graphs import Topology

GROUPS = 50  # of the jackknife: enough that its error is known to a tenth
FEW_GRAPHS = 10  # with fewer graphs, nodes are the units; accuracy of whole graphs always goes by graphs
SIGMAS = 1.5  # standard errors that a gain must exceed, as for the combination of networks


@dataclass(frozen=True, eq=False)
class Judged:
    """What a model says about the nodes of some graphs."""

    labels: Tensor  # [tasks, nodes]
    probabilities: Tensor  # [tasks, nodes, states]

    def score(self, level: str, truth: Tensor, topology: Topology) -> float:
        """The score of all tasks at a level; `truth` [tasks, nodes] is -1 where a label is missing."""
        return pooled_score(level, self.labels, truth, topology, self.probabilities)


def is_better(level: str, before: Judged, after: Judged, truth: Tensor, topology: Topology) -> bool:
    """Whether answers are better than others beyond noise: at the level, or in node accuracy and no worse at the level.

    Accuracies of whole graphs tell little apart where there are few; every node tells more.
    """
    gain, error = score_gain(level, before, after, truth, topology)
    if not gain >= 0:
        return False
    if gain > SIGMAS * error:
        return True
    nodes, node_error = score_gain("node", before, after, truth, topology)
    return nodes > SIGMAS * node_error


def score_gain(level: str, before: Judged, after: Judged, truth: Tensor, topology: Topology) -> tuple[float, float]:
    """How much higher the score of `after` is, and the standard error of that (jackknife over groups of graphs).

    The units are graphs, or nodes where there are few graphs. The error is infinite where it cannot be found.

    Args:
        level: one of `accord.evaluation.LEVELS`.
        before: answers on the graphs.
        after: other answers on the same graphs.
        truth: [tasks, nodes], -1 where a label is missing.
        topology: the graphs.
    """

    def gain(true: Tensor) -> float:
        return after.score(level, true, topology) - before.score(level, true, topology)

    known = (truth >= 0).any(0)
    unit = topology.graph
    if level != "graph" and len(unit[known].unique()) < FEW_GRAPHS:
        unit = torch.arange(topology.num_nodes, device=unit.device)
    found, place = unit[known].unique(return_inverse=True)
    groups = min(GROUPS, len(found))
    if groups < 2:
        return gain(truth), math.inf
    group = torch.full_like(unit, -1)
    group[known] = place % groups
    without = torch.tensor([gain(truth.masked_fill(group == number, -1)) for number in range(groups)])
    error = math.sqrt((groups - 1) / groups * float((without - without.mean()).square().sum()))
    return gain(truth), math.inf if math.isnan(error) else error
