"""Leaf peeling: remove leaves from a graph, round by round, until only the core is left: loops, or one root per tree.

The peeled part can be solved exactly by passing messages from the leaves inwards and labels back outwards; only the
core has loops. The core of a forest has no edges.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class PeelingRound:
    """Leaves that are removed at the same time; one edge links each to its parent."""

    leaf: Tensor  # [leaves]
    parent: Tensor  # [leaves]
    edge: Tensor  # [leaves]: column of the edge index
    leaf_is_source: Tensor  # [leaves]: whether the edge is stored from leaf to parent


@dataclass(frozen=True)
class Peeling:
    """The rounds in which leaves are removed, and the core that is left."""

    rounds: tuple[PeelingRound, ...]
    core: Tensor  # [nodes]: True where the node was not peeled
    core_edge: Tensor  # [edges]: True where both ends are in the core

    @property
    def is_forest(self) -> bool:
        """Whether the graph has no loop."""
        return not bool(self.core_edge.any())


def peel(edge_index: Tensor, num_nodes: int) -> Peeling:
    """Remove leaves until there are none; takes O(nodes + edges) time.

    Each node keeps the *sum* of the numbers of its remaining neighbours, and of its remaining edges. For a leaf these
    sums are the one neighbour and the one edge, so no adjacency list is needed.
    """
    device = edge_index.device
    source, target = edge_index.cpu().numpy()
    edges = np.arange(source.size)
    degree = np.bincount(source, minlength=num_nodes) + np.bincount(target, minlength=num_nodes)
    neighbour_sum = np.zeros(num_nodes, dtype=np.int64)
    edge_sum = np.zeros(num_nodes, dtype=np.int64)
    for near, far in ((source, target), (target, source)):
        np.add.at(neighbour_sum, near, far)
        np.add.at(edge_sum, near, edges)

    rounds = []
    peeled = np.zeros(num_nodes, dtype=bool)
    peeled_edge = np.zeros(source.size, dtype=bool)
    frontier = np.flatnonzero(degree == 1)
    while frontier.size:
        parent = neighbour_sum[frontier]
        # If two leaves are left with only each other, the lower-numbered one stays as the root.
        goes = (degree[parent] != 1) | (frontier > parent)
        leaf, parent = frontier[goes], parent[goes]
        edge = edge_sum[leaf]
        rounds.append((leaf, parent, edge, source[edge] == leaf))
        peeled[leaf], peeled_edge[edge] = True, True
        degree[leaf] = 0
        np.subtract.at(degree, parent, 1)
        np.subtract.at(neighbour_sum, parent, leaf)
        np.subtract.at(edge_sum, parent, edge)
        touched = np.unique(parent)
        frontier = touched[degree[touched] == 1]

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device)

    return Peeling(
        rounds=tuple(PeelingRound(*(tensor(part) for part in parts)) for parts in rounds),
        core=tensor(~peeled),
        core_edge=tensor(~peeled_edge),
    )
