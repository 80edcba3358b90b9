"""Ensembles: networks of several seeds, trained side by side, whose evidence is averaged before the field is built.

The members of an ensemble are replicas with consecutive seeds. Their scores of nodes and of edges are averaged; what
follows (the choice of a combination, the field, inference) sees one model.

The average is the log of the members' mean probability. The mean of their log-probabilities labels validation graphs
equally well (results/ensembles/averaging.md), but lets one member that is surely wrong outvote all others.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from accord.learning import Replicas


@dataclass(frozen=True)
class Ensemble:
    """How the replicas of networks form ensembles.

    Replicas are numbered seeds x tasks, so [ensembles x members x tasks, ...] is averaged to [ensembles x tasks, ...].

    Args:
        members: seeds of one ensemble; with 1 nothing is averaged.
        num_tasks: labels per node.
    """

    members: int = 1
    num_tasks: int = 1

    @classmethod
    def of(cls, replicas: Replicas, members: int) -> "Ensemble":
        """Each `members` consecutive seeds of replicas; refused where their number is no multiple of that."""
        replicas.pooled(members)
        return cls(members, replicas.num_tasks)

    def average_nodes(self, logits: Tensor) -> Tensor:
        """Scores of nodes [members x R, nodes, states] -> [R, nodes, states]."""
        return logits if self.members == 1 else self._average(logits.log_softmax(-1))

    def average_edges(self, logits: Tensor) -> Tensor:
        """Scores of edges [members x R, edges, states, states] -> [R, edges, states, states]."""
        if self.members == 1:
            return logits
        return self._average(logits.flatten(-2).log_softmax(-1).view_as(logits))

    def average_triangles(self, logits: Tensor) -> Tensor:
        """Scores of triangles [members x R, triangles, states, states, states] -> [R, triangles, ...]."""
        if self.members == 1:
            return logits
        return self._average(logits.flatten(-3).log_softmax(-1).view_as(logits))

    def _average(self, logs: Tensor) -> Tensor:
        """The log of the mean over members of exp(logs)."""
        by_member = logs.unflatten(0, (-1, self.members, self.num_tasks))
        averaged: Tensor = by_member.logsumexp(1).flatten(0, 1) - math.log(self.members)
        return averaged
