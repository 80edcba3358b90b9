"""Breadth-first levels from the centre of every connected component."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    import scipy.sparse as sparse

Numbers = NDArray[np.int64]


def centre_levels(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Distance [nodes] of every node from the centre of its component; neighbours differ by 1 at most.

    The centre is the node closest to both ends of a longest shortest path. The path is found by breadth-first search
    from any node to the farthest one, and from there again: exact on trees, a good approximation on loopy graphs. Takes
    O(nodes + edges) time.
    """
    import scipy.sparse as sparse  # scipy is slow to load, and most calls do not need it
    from scipy.sparse.csgraph import connected_components

    source, target = edge_index.cpu().numpy()
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    adjacency = sparse.csr_matrix((np.ones(both[0].size), both), shape=(num_nodes, num_nodes))
    _, component = connected_components(adjacency, directed=False)
    first = _best_of_each(component, np.arange(num_nodes))
    one_end = _best_of_each(component, -_distances(adjacency, first))
    from_one = _distances(adjacency, one_end)
    other_end = _best_of_each(component, -from_one)
    centre = _best_of_each(component, np.maximum(from_one, _distances(adjacency, other_end)))
    return torch.from_numpy(_distances(adjacency, centre)).to(edge_index.device)


def _best_of_each(component: NDArray[np.int32], cost: Numbers) -> Numbers:
    """The node of least cost in each component; the lowest-numbered one among equals."""
    order = np.lexsort((cost, component)).astype(np.int64)
    first: Numbers = order[np.unique(component[order], return_index=True)[1]]
    return first


def _distances(adjacency: "sparse.csr_matrix", sources: Numbers) -> Numbers:
    """Number of edges between each node and the source in its component."""
    starts, neighbours = adjacency.indptr.astype(np.int64), adjacency.indices
    distance = np.full(adjacency.shape[0], -1, dtype=np.int64)
    frontier, level = sources, 0
    while frontier.size:
        distance[frontier] = level
        near = neighbours[ranges(starts[frontier], starts[frontier + 1])]
        frontier = np.unique(near[distance[near] < 0]).astype(np.int64)
        level += 1
    return distance


def ranges(starts: Numbers, ends: Numbers) -> Numbers:
    """The integers of several ranges, concatenated."""
    lengths = ends - starts
    skipped = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    numbers: Numbers = np.arange(skipped.size, dtype=np.int64) + skipped
    return numbers
