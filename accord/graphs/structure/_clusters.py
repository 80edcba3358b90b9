"""Division of a graph into clusters: parts of similar size with few edges between them."""

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from accord.errors import OptionError

ROUNDS = 30  # of refinement; most edges are saved in the first ten
SLACK = 1.1  # largest part, relative to the mean


def cluster_nodes(edge_index: Tensor, num_nodes: int, clusters: int, seed: int = 0) -> Tensor:
    """The cluster of each node [nodes].

    A breadth-first order (reverse Cuthill-McKee) is cut into pieces of equal size. Then nodes move to the cluster that
    most of their neighbours are in, those with the largest gain first, while there is room.

    Args:
        edge_index: [2, edges], each undirected edge once.
        num_nodes: how many nodes there are.
        clusters: how many clusters to make, at least 1; there are fewer if there are fewer nodes.
        seed: of the order of moves.
    """
    if isinstance(clusters, bool) or not isinstance(clusters, int) or clusters < 1:
        raise OptionError(f"cluster_nodes: clusters is {clusters!r}; a positive whole number is needed.")
    if not num_nodes:
        return torch.empty(0, dtype=torch.long)
    clusters = min(clusters, num_nodes)
    source, target = edge_index.cpu().numpy()
    ends = np.concatenate([source, target]), np.concatenate([target, source])
    adjacency = sparse.csr_matrix((np.ones(len(ends[0]), np.float32), ends), shape=(num_nodes, num_nodes))
    order = sparse.csgraph.reverse_cuthill_mckee(adjacency, symmetric_mode=True)
    cluster = np.empty(num_nodes, np.int64)
    cluster[order] = np.arange(num_nodes) * clusters // num_nodes
    generator = np.random.default_rng(seed)
    room = int(np.ceil(SLACK * num_nodes / clusters))
    for _ in range(ROUNDS):
        if not _move(cluster, adjacency, clusters, room, generator):
            break
    return torch.from_numpy(cluster)


def _move(
    cluster: np.ndarray, adjacency: sparse.csr_matrix, clusters: int, room: int, generator: np.random.Generator
) -> bool:
    """Move nodes to better clusters, in place; return whether any could gain."""
    num_nodes = len(cluster)
    member = sparse.csr_matrix((np.ones(num_nodes, np.float32), (np.arange(num_nodes), cluster)), (num_nodes, clusters))
    found = (adjacency @ member).tocsr()  # neighbours of each node in each cluster
    own = np.asarray(found[np.arange(num_nodes), cluster]).ravel()
    best, most = np.asarray(found.argmax(1)).ravel(), found.max(1).toarray().ravel()
    gain = most - own
    wanting = np.flatnonzero(gain > 0)
    if not len(wanting):
        return False
    # Half of them at a time: neighbours that change places with each other would gain nothing.
    wanting = wanting[generator.random(len(wanting)) < 0.5]
    wanting = wanting[np.argsort(-gain[wanting], kind="stable")]
    size = np.bincount(cluster, minlength=clusters)
    goal = best[wanting]
    by_goal = np.argsort(goal, kind="stable")
    rank = np.empty(len(goal), np.int64)  # of each node among those that want the same cluster
    rank[by_goal] = np.arange(len(goal)) - np.searchsorted(goal[by_goal], goal[by_goal])
    moving = wanting[rank < (room - size)[goal]]
    cluster[moving] = best[moving]
    return True
