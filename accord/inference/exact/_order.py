"""The order in which nodes are eliminated, and the clique that each elimination makes.

Summing out a node makes its neighbours depend on each other, so eliminating it links them all; the node and its
neighbours at that moment are a clique of the filled-in graph. Exact inference is cheaper the smaller the cliques are.
Finding the best order is NP-hard; two heuristics are tried, and each component uses the better one.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import combinations, count

import numpy as np
from torch import Tensor

NARROW = 4  # nodes; components whose cliques are no larger are not tried a second time

Cost = tuple[float, int]
Neighbours = list[set[int]]


def find_cliques(edge_index: Tensor, num_nodes: int, max_clique: int) -> list[list[int]]:
    """Eliminate all nodes, each component in the better of two orders.

    Args:
        edge_index: [2, edges], each undirected edge once.
        num_nodes: how many nodes there are.
        max_clique: larger cliques are of no use to the caller. If the result holds one, no order without was found; the
            cliques after it in the same component are then invalid, since the graph was not filled in.

    Returns:
        For each node, in order of elimination, the clique that it makes: the node first, the others in any order.
    """
    import scipy.sparse as sparse  # scipy is slow to load, and most calls do not need it
    from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee

    source, target = edge_index.cpu().numpy()
    links = sparse.coo_matrix((np.ones(source.size, dtype=np.int8), (source, target)), shape=(num_nodes,) * 2).tocsr()
    component = connected_components(links, directed=False)[1].tolist() if num_nodes else []
    cliques = _by_component(_min_fill(_adjacency(edge_index, num_nodes), max_clique), component)
    wide = {name for name, found in cliques.items() if _width(found)[0] > NARROW}
    if wide:
        # Breadth-first order: on grids and strips its cliques are about as large as the grid is wide. Min-fill
        # eliminates from all sides there, and meets larger cliques in the middle.
        order = reverse_cuthill_mckee(links + links.T, symmetric_mode=True).tolist()
        front = _in_order(
            _adjacency(edge_index, num_nodes), (node for node in order if component[node] in wide), max_clique
        )
        for name, found in _by_component(front, component).items():
            cliques[name] = min(cliques[name], found, key=_width)
    return [clique for found in cliques.values() for clique in found]


def _min_fill(neighbours: Neighbours, max_clique: int) -> Iterator[list[int]]:
    """Eliminate, at each step, the node whose neighbours need the fewest new edges between them.

    This peels trees from their leaves, adds nothing to chordal graphs, and is the best of the cheap heuristics on
    irregular graphs (Koller and Friedman 2009, section 9.4).
    """
    costs: list[Cost | None] = [_cost(neighbours, node, max_clique) for node in range(len(neighbours))]
    # Among equals, the node that has waited longest goes first: trees are then peeled from all sides at once, and
    # the tree of cliques is as shallow as possible.
    clock = count(len(neighbours))
    heap = [(cost, node, node) for node, cost in enumerate(costs) if cost is not None]
    heapq.heapify(heap)
    while heap:
        cost, _, node = heapq.heappop(heap)
        if cost != costs[node]:
            continue  # outdated: the node was pushed again, or is already eliminated
        costs[node] = None
        yield [node, *neighbours[node]]
        if len(neighbours[node]) < max_clique:
            for other in sorted(_remove(neighbours, node)):
                new = _cost(neighbours, other, max_clique)
                if new != costs[other]:
                    costs[other] = new
                    heapq.heappush(heap, (new, next(clock), other))


def _in_order(neighbours: Neighbours, order: Iterable[int], max_clique: int) -> Iterator[list[int]]:
    """Eliminate nodes in a given order."""
    for node in order:
        yield [node, *neighbours[node]]
        if len(neighbours[node]) < max_clique:
            _remove(neighbours, node)


def _adjacency(edge_index: Tensor, num_nodes: int) -> Neighbours:
    neighbours: Neighbours = [set() for _ in range(num_nodes)]
    for source, target in edge_index.t().tolist():
        neighbours[source].add(target)
        neighbours[target].add(source)
    return neighbours


def _by_component(cliques: Iterable[list[int]], component: list[int]) -> dict[int, list[list[int]]]:
    found: dict[int, list[list[int]]] = {}
    for clique in cliques:
        found.setdefault(component[clique[0]], []).append(clique)
    return found


def _width(cliques: list[list[int]]) -> tuple[int, int]:
    """Size of the widest clique, and how many there are of that size."""
    sizes = [len(clique) for clique in cliques]
    return max(sizes), sizes.count(max(sizes))


def _cost(neighbours: Neighbours, node: int, max_clique: int) -> Cost:
    """Number of edges that eliminating the node would add, then its degree."""
    around = neighbours[node]
    degree = len(around)
    if degree >= max_clique:
        return float("inf"), degree  # too large already; counting pairs around a hub would take quadratic time
    if degree < 2:
        return 0, degree
    present = sum(len(neighbours[other] & around) for other in around) // 2
    return degree * (degree - 1) // 2 - present, degree


def _remove(neighbours: Neighbours, node: int) -> set[int]:
    """Remove the node, link its neighbours, and return the nodes whose cost may have changed."""
    around = neighbours[node]
    for other in around:
        neighbours[other].discard(node)
    changed = set(around)
    for one, two in combinations(around, 2):
        if two not in neighbours[one]:
            # A common neighbour of both ends has one edge less to fill in.
            changed |= neighbours[one] & neighbours[two]
            neighbours[one].add(two)
            neighbours[two].add(one)
    neighbours[node] = set()
    return changed
