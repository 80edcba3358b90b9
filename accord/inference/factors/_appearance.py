"""Appearance of factors in forests, for reweighted propagation.

A set of factors is a forest if the graph of factors and variables has no cycle among them. The average over forests of
the indicator of each factor makes the reweighted log-partition an upper bound: the entropy of any distribution is at
most that of its projection on each forest (Wainwright, Jaakkola and Willsky 2005, with trees of factors).
"""

import numpy as np
import torch
from torch import Tensor

from accord.field.factors import FactorField

FORESTS = 32  # to average over; more even out the weights of factors


def spanning_forests(field: FactorField, seed: int = 0) -> Tensor:
    """The share of random forests in which each factor appears [factors], group by group; never 0.

    Each forest takes factors in random order, those that earlier forests used least first, and leaves out what would
    close a cycle.
    """
    scopes = [row for group in field.groups for row in group.scope.tolist()]
    random = np.random.default_rng(seed)
    used = np.zeros(len(scopes))
    forests = 0
    while len(scopes) and (forests < FORESTS or not used.all()):
        used[_forest(scopes, field.num_nodes, np.lexsort((random.random(len(scopes)), used)))] += 1
        forests += 1
    return torch.from_numpy(used / max(forests, 1)).to(field.node.device)


def _forest(scopes: list[list[int]], num_nodes: int, order: np.ndarray) -> list[int]:
    """Factors that close no cycle, taken greedily in this order."""
    parent = list(range(num_nodes))

    def root(variable: int) -> int:
        while parent[variable] != variable:
            parent[variable] = parent[parent[variable]]
            variable = parent[variable]
        return variable

    chosen = []
    for factor in order.tolist():
        roots = {root(variable) for variable in scopes[factor]}
        if len(roots) == len(scopes[factor]):
            first = roots.pop()
            for other in roots:
                parent[other] = first
            chosen.append(factor)
    return chosen
