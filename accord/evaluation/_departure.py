"""Departure: how often joint labels differ from those of the node network alone, and when that is out of the usual."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.graphs import Topology

Usual = list[float]  # nodes, nodes that differ, and how much their share varies between graphs
SIGMAS = 4.0  # beyond the usual
TIMES = 2.0  # the usual share at least
FEWEST = 5  # nodes: fewer differences are never out of the usual


def usual_departure(differs: Tensor, topology: Topology) -> Usual:
    """What is usual on validation graphs.

    Args:
        differs: [nodes], where the joint label is not the node network's.
        topology: the graphs.
    """
    nodes, changed = differs.numel(), float(differs.sum())
    sizes = torch.bincount(topology.graph, minlength=topology.num_graphs).double().to(differs.device)
    counts = torch.zeros_like(sizes).index_add_(0, topology.graph, differs.double())
    share = changed / max(nodes, 1)
    spread = 0.0
    if topology.num_graphs > 1:
        # The variance of the counts beyond what chance alone would give, as a share of the nodes.
        beyond = (counts - share * sizes).square().sum() - (share * (1 - share) * sizes).sum()
        spread = math.sqrt(max(float(beyond / sizes.square().sum()), 0.0))
    return [float(nodes), changed, spread]


def most_departures(usual: Sequence[float], nodes: int) -> float:
    """How many of `nodes` may differ before it is out of the usual."""
    seen, changed, spread = usual
    share = (changed + 1) / (seen + 2)
    # Chance on the new graph, variation between graphs, and the uncertainty of the share itself.
    variance = share * (1 - share) * (1 / max(nodes, 1) + 1 / (seen + 2)) + spread**2
    return max(FEWEST, nodes * max(TIMES * share, share + SIGMAS * math.sqrt(variance)))
