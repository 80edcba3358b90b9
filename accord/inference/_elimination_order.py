"""In which order to eliminate nodes: greedy min-fill, and the clique that each elimination makes."""

import heapq
from collections.abc import Iterator
from itertools import combinations, count

from torch import Tensor

Cost = tuple[float, int]


def eliminate_nodes(edge_index: Tensor, num_nodes: int, max_clique: int) -> Iterator[list[int]]:
    """Take nodes out one by one, each time the one whose neighbours need the fewest new edges between them.

    Eliminating a node links all its neighbours, since its sum ties them together; the node and its neighbours at
    that moment are a clique of the filled-in graph. Min-fill takes leaves of trees first, never links anything
    in a chordal graph, and is the best of the cheap heuristics elsewhere (Koller and Friedman 2009, section 9.4).

    Args:
        edge_index: [2, edges], each undirected edge once.
        num_nodes: how many nodes there are.
        max_clique: cliques beyond this are of no use to the caller, so their fill-in is not counted (hubs would
            take quadratic time). They come last, smallest first: stop at the first one.

    Yields:
        For each node, in order of elimination, the clique that it makes: the node first, the others in any order.
    """
    neighbours = _adjacency(edge_index, num_nodes)
    costs: list[Cost | None] = [_cost(neighbours, node, max_clique) for node in range(num_nodes)]
    # Among equals the one that has waited longest goes first: trees are then peeled from all sides at once, and
    # the tree of cliques is as shallow as it can be.
    clock = count(num_nodes)
    heap = [(cost, node, node) for node, cost in enumerate(costs) if cost is not None]
    heapq.heapify(heap)
    while heap:
        cost, _, node = heapq.heappop(heap)
        if cost != costs[node]:
            continue  # out of date: the node was pushed again, or is gone
        yield [node, *neighbours[node]]
        costs[node] = None
        for other in sorted(_remove(neighbours, node)):
            new = _cost(neighbours, other, max_clique)
            if new != costs[other]:
                costs[other] = new
                heapq.heappush(heap, (new, next(clock), other))


def _adjacency(edge_index: Tensor, num_nodes: int) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in range(num_nodes)]
    for source, target in edge_index.t().tolist():
        neighbours[source].add(target)
        neighbours[target].add(source)
    return neighbours


def _cost(neighbours: list[set[int]], node: int, max_clique: int) -> Cost:
    """Number of edges that eliminating the node would add, then its degree."""
    around = neighbours[node]
    degree = len(around)
    if degree >= max_clique:
        return float("inf"), degree
    if degree < 2:
        return 0, degree
    present = sum(len(neighbours[other] & around) for other in around) // 2
    return degree * (degree - 1) // 2 - present, degree


def _remove(neighbours: list[set[int]], node: int) -> set[int]:
    """Take the node out, link its neighbours, and say whose cost may have changed."""
    around = neighbours[node]
    for other in around:
        neighbours[other].discard(node)
    changed = set(around)
    for one, two in combinations(around, 2):
        if two not in neighbours[one]:
            # Whoever knows both ends of a new edge has one edge less to fill in.
            changed |= neighbours[one] & neighbours[two]
            neighbours[one].add(two)
            neighbours[two].add(one)
    neighbours[node] = set()
    return changed
