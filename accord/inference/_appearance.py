"""Edge appearance probabilities for tree-reweighted propagation.

In a uniform random spanning tree an edge appears with probability equal to its effective resistance when every
edge is a unit resistor (Kirchhoff). Such probabilities lie in the spanning tree polytope, and therefore the
tree-reweighted log-partition is an upper bound (Wainwright, Jaakkola and Willsky 2005).
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accord.inference import _spanning

DENSE_NODES = 1500  # the Laplacian of a component up to this size is inverted fastest as a dense matrix
COMPILED_NODES = 48  # larger components are solved by the kernel, where there is one
SOLVE_COLUMNS = 256  # right-hand sides solved at a time on larger components; limits the memory


def spanning_tree_probabilities(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Probability [edges], float64, that an edge lies in a uniform spanning tree of its component.

    Exact up to some 10^5 nodes on planar and other sparse graphs, by elimination of the Laplacian: a block (biconnected
    component) is solved apart, and a bridge has probability 1. A block for which that would take more than 3 * 10^9
    operations gets averages over 16 to 64 uniform spanning trees (Wilson 1996), and over further trees through edges
    that are in none of them. So probabilities are positive and lie in the spanning tree polytope in any case: the
    tree-reweighted log-partition stays an upper bound.

    Without a C++ compiler, a component of more than 1,500 nodes costs one sparse solve for each edge.
    """
    import scipy.sparse as sparse  # scipy is slow to load, and most calls do not need it
    from scipy.sparse.csgraph import connected_components

    source, target = edge_index.cpu().numpy()
    ones = np.ones(source.size)
    adjacency = sparse.coo_matrix((ones, (source, target)), shape=(num_nodes, num_nodes))
    _, component = connected_components(adjacency, directed=False)
    sizes = np.bincount(component, minlength=1)
    position = _position_in_component(component)
    resistance = np.ones(source.size)
    edge_component = component[source]
    large = sizes[edge_component] > min(DENSE_NODES, COMPILED_NODES)
    if large.any() and _spanning.available():
        resistance[large] = _spanning.probabilities(source[large], target[large], num_nodes)
    else:
        large[:] = False
    for size in np.unique(sizes[edge_component[~large]]):
        chosen = np.flatnonzero(~large & (sizes[edge_component] == size))
        s, t, c = position[source[chosen]], position[target[chosen]], edge_component[chosen]
        if size <= DENSE_NODES:
            resistance[chosen] = _dense_resistance(s, t, c, int(size))
        else:
            for one in np.unique(c):
                mine = c == one
                resistance[chosen[mine]] = _sparse_resistance(s[mine], t[mine], int(size))
    # Rounding may leave a bridge slightly above 1.
    return torch.from_numpy(resistance.clip(max=1.0)).to(edge_index.device)


def _position_in_component(component: NDArray[np.int32]) -> NDArray[np.int64]:
    order = np.argsort(component, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(component, minlength=1))[:-1]])
    position = np.empty(component.size, dtype=np.int64)
    position[order] = np.arange(component.size) - starts[component[order]]
    return position


def _dense_resistance(
    s: NDArray[np.int64], t: NDArray[np.int64], component: NDArray[np.int32], size: int
) -> NDArray[np.float64]:
    """Solve all components of one size in batches: R_st = (e_s - e_t)' (L + 11'/n)^-1 (e_s - e_t)."""
    names, which = np.unique(component, return_inverse=True)
    resistance = np.empty(s.size)
    block = max(1, DENSE_NODES**2 // size**2)
    for first in range(0, names.size, block):
        mine = np.flatnonzero((which >= first) & (which < first + block))
        b, i, j = which[mine] - first, s[mine], t[mine]
        laplacian = np.full((min(block, names.size - first), size, size), 1.0 / size)
        laplacian[b, i, j] -= 1
        laplacian[b, j, i] -= 1
        np.add.at(laplacian, (b, i, i), 1)
        np.add.at(laplacian, (b, j, j), 1)
        inverse = np.linalg.inv(laplacian)
        resistance[mine] = inverse[b, i, i] + inverse[b, j, j] - inverse[b, i, j] - inverse[b, j, i]
    return resistance


def _sparse_resistance(s: NDArray[np.int64], t: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Solve one large component: ground node 0, send a unit current along each edge, many edges at a time."""
    import scipy.sparse as sparse
    from scipy.sparse.linalg import splu

    weights = np.ones(s.size)
    adjacency = sparse.coo_matrix((weights, (s, t)), shape=(size, size))
    adjacency = adjacency + adjacency.T
    laplacian = sparse.diags(np.asarray(adjacency.sum(1)).ravel()) - adjacency
    factor = splu(laplacian.tocsc()[1:, 1:])
    resistance = np.empty(s.size)
    for first in range(0, s.size, SOLVE_COLUMNS):
        i, j = s[first : first + SOLVE_COLUMNS], t[first : first + SOLVE_COLUMNS]
        columns = np.arange(i.size)
        current = np.zeros((size, i.size))
        current[i, columns], current[j, columns] = 1.0, -1.0
        voltage = np.zeros((size, i.size))
        voltage[1:] = factor.solve(current[1:])
        resistance[first : first + i.size] = voltage[i, columns] - voltage[j, columns]
    return resistance
