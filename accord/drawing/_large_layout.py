"""Layout of large graphs in about a second for 5,000 nodes, and which nodes to draw of one that is still larger.

Distances in the drawing follow distances in the graph, but only to neighbours and to a few pivots (Brandes and Pich
2007; Ortmann, Klimenta and Brandes 2017): the work of a step grows with nodes and edges, not with pairs of nodes.
"""

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path
from scipy.spatial import cKDTree

PIVOTS = 40
STEPS = 40
APART_STEPS = 12  # that push nodes apart which lie too close
GAP = 0.8  # least distance of two nodes, if an even spread would give 1
PACKING_GAP = 2.0  # between two components, in the same unit


def place_many(adjacency: csr_matrix) -> np.ndarray:
    """Positions [nodes, 2] of a symmetric adjacency matrix; components side by side, with equal density."""
    count, component = connected_components(adjacency, directed=False)
    order = np.argsort(component, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(component, minlength=count))[:-1])
    position = np.zeros((adjacency.shape[0], 2))
    for group in groups:
        if len(group) > 1:
            position[group] = _place_component(adjacency[group][:, group].tocsr())
    return _pack(position, sorted(groups, key=len, reverse=True))


def nearest_nodes(adjacency: csr_matrix, centre: int, most: int) -> np.ndarray:
    """The nodes nearest to one, in ascending order; further ones only if its component has fewer than `most`."""
    found = breadth_first_order(adjacency, centre, directed=False, return_predecessors=False)[:most]
    if len(found) < most:
        others = np.setdiff1d(np.arange(adjacency.shape[0]), found)
        found = np.concatenate([found, others[: most - len(found)]])
    return np.sort(found)


def _place_component(adjacency: csr_matrix) -> np.ndarray:
    """Stress majorisation over neighbours and pivots, then a push apart."""
    nodes = adjacency.shape[0]
    pivots, distance = _pivots(adjacency, min(PIVOTS, nodes))
    position = _start(distance)
    source, target = adjacency.nonzero()
    far = np.maximum(distance, 1.0)
    weight = np.where(distance > 0, far**-2.0, 0.0)
    total = weight.sum(1) + np.bincount(source, minlength=nodes)
    for _ in range(STEPS):
        pulled = np.zeros_like(position)
        gap = position[source] - position[target]
        length = np.maximum(np.linalg.norm(gap, axis=1, keepdims=True), 1e-9)
        wish = position[target] + gap / length
        for axis in (0, 1):
            pulled[:, axis] = np.bincount(source, wish[:, axis], minlength=nodes)
        gaps = position[:, None] - position[pivots][None]
        lengths = np.maximum(np.linalg.norm(gaps, axis=2, keepdims=True), 1e-9)
        wishes = position[pivots][None] + gaps / lengths * distance[..., None]
        pulled += (weight[..., None] * wishes).sum(1)
        position = pulled / np.maximum(total, 1e-9)[:, None]
    return _push_apart(position)


def _pivots(adjacency: csr_matrix, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes far from each other, and the distance of every node to each [nodes, pivots]."""
    pivots, nearest = [int(np.diff(adjacency.indptr).argmax())], np.full(adjacency.shape[0], np.inf)
    columns = []
    while True:
        columns.append(shortest_path(adjacency, method="D", directed=False, unweighted=True, indices=pivots[-1]))
        nearest = np.minimum(nearest, columns[-1])
        if len(pivots) == count:
            return np.array(pivots), np.column_stack(columns)
        pivots.append(int(nearest.argmax()))


def _start(distance: np.ndarray) -> np.ndarray:
    """Principal components of the distances to pivots; equal nodes get different places."""
    squared = distance**2
    centred = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(centred.T @ centred)
    found = centred @ vectors[:, -2:]
    spread = np.maximum(np.abs(found).max(0), 1e-9)
    angle = np.arange(len(distance)) * 2.4  # the golden angle, in radians: all directions differ
    shifts = np.column_stack([np.cos(angle), np.sin(angle)]) * np.linspace(0.1, 0.6, len(distance))[:, None]
    started: np.ndarray = found / spread * np.array([0.7, 1.0]) * distance.max() / 2 + shifts
    return started


def _push_apart(position: np.ndarray) -> np.ndarray:
    """Scale to one node in a unit of area, and move nodes away from each other that lie too close."""
    spread = np.maximum(position.std(0), 1e-3 * max(float(position.std()), 1e-9))
    position = position / np.sqrt(4 * np.pi * float(spread.prod()) / len(position))
    for _ in range(APART_STEPS):
        first, second = cKDTree(position).query_pairs(GAP, output_type="ndarray").T
        gap = position[first] - position[second]
        length = np.linalg.norm(gap, axis=1, keepdims=True)
        angle = (first * 2.4 + second)[:, None]
        direction = np.where(length > 1e-6, gap / np.maximum(length, 1e-6), np.hstack([np.cos(angle), np.sin(angle)]))
        push = 0.3 * (GAP - length) * direction
        moved = np.zeros_like(position)
        for axis in (0, 1):
            moved[:, axis] = np.bincount(first, push[:, axis], len(position))
            moved[:, axis] -= np.bincount(second, push[:, axis], len(position))
        far = np.linalg.norm(moved, axis=1, keepdims=True)
        position = position + moved * np.minimum(1.0, GAP / np.maximum(far, 1e-9))
    return position


def _pack(position: np.ndarray, groups: list[np.ndarray]) -> np.ndarray:
    """Put components into rows, largest first."""
    boxes = [np.ptp(position[group], axis=0) + PACKING_GAP for group in groups]
    width = max(float(boxes[0][0]), 1.4 * np.sqrt(sum(float(box.prod()) for box in boxes)))
    left = top = height = 0.0
    for group, box in zip(groups, boxes, strict=True):
        if left and left + box[0] > width:
            left, top, height = 0.0, top - height, 0.0
        position[group] += np.array([left, top - box[1]]) - position[group].min(0)
        left, height = left + float(box[0]), max(height, float(box[1]))
    return position
