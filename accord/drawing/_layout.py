"""Layout of graphs: distances in the drawing follow distances in the graph (Kamada and Kawai 1989)."""

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import shortest_path

from accord.drawing._large_layout import place_many

SMALL = 120  # nodes; the work for all pairs of more takes seconds
COMPONENT_GAP = 1.5  # steps between components, beyond the longest path inside one


def place_nodes(num_nodes: int, edges: np.ndarray) -> np.ndarray:
    """Positions [nodes, 2] between -1 and 1; the longer axis of the drawing is horizontal.

    Args:
        num_nodes: number of nodes.
        edges: [2, edges].
    """
    if num_nodes < 2:
        return np.zeros((num_nodes, 2))
    adjacency = adjacency_of(num_nodes, edges)
    if num_nodes > SMALL:
        return _fit_frame(place_many(adjacency), turn=False)
    distance = shortest_path(adjacency, directed=False, unweighted=True)
    reach = distance[np.isfinite(distance)].max()
    distance[~np.isfinite(distance)] = reach + COMPONENT_GAP
    first, second = np.triu_indices(num_nodes, 1)
    wanted = distance[first, second]

    def stress(flat: np.ndarray) -> tuple[float, np.ndarray]:
        position = flat.reshape(-1, 2)
        gap = position[first] - position[second]
        length = np.maximum(np.linalg.norm(gap, axis=1), 1e-9)
        error = length / wanted - 1
        pull = (2 * error / (wanted * length))[:, None] * gap
        gradient = np.zeros_like(position)
        np.add.at(gradient, first, pull)
        np.add.at(gradient, second, -pull)
        return float((error**2).sum()), gradient.ravel()

    found = minimize(stress, _start(distance).ravel(), jac=True, method="L-BFGS-B").x.reshape(-1, 2)
    return _fit_frame(found)


def adjacency_of(num_nodes: int, edges: np.ndarray) -> csr_matrix:
    """The symmetric adjacency matrix of edges [2, edges]."""
    both = np.concatenate([edges, edges[::-1]], axis=1)
    return coo_matrix((np.ones(both.shape[1]), both), shape=(num_nodes, num_nodes)).tocsr()


def _start(distance: np.ndarray) -> np.ndarray:
    """Start from classical scaling, with small shifts that keep equivalent nodes from starting at the same place."""
    squared = distance**2
    centred = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    scaled = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    angle = np.arange(len(distance)) * 2.4  # the golden angle, in radians: all directions differ
    shifted: np.ndarray = scaled + 0.1 * np.column_stack([np.cos(angle), np.sin(angle)])
    return shifted


def _fit_frame(position: np.ndarray, turn: bool = True) -> np.ndarray:
    """Rotate the longer axis into the horizontal, centre, and scale to [-1, 1]."""
    turned = position - position.mean(0)
    if turn:
        _, _, axes = np.linalg.svd(turned, full_matrices=False)
        turned = turned @ axes.T
    low, high = turned.min(0), turned.max(0)
    middle, half = (low + high) / 2, max(float((high - low).max()) / 2, 1e-9)
    framed: np.ndarray = (turned - middle) / half
    return framed
