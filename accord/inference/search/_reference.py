"""The search without a compiler: a dual bound, its roundings, and single nodes that change state.

Much slower than the C++ kernel, and with fewer methods, but with the same guarantees: the bound holds, and labels are
allowed or -1.
"""

import time

import numpy as np

from accord.inference.search._dual import Dual
from accord.inference.search._ragged import Components, Ragged

GAP = 1e-9  # relative to the score; a smaller gap counts as closed
DUAL, LOCAL = 2, 3  # as in native/portfolio.hpp
LEAST_FALL = 1e-7  # of the bound in an iteration, relative to the gap: less has converged


def solve(model: Ragged, budget: float, seed: int, used: float = 0.0) -> Components:
    """What `_native.solve` returns, as far as it is found in `budget` seconds, of which some are used."""
    import scipy.sparse as sparse  # scipy is slow to load, and most calls do not need it
    from scipy.sparse.csgraph import connected_components

    begun, rng = time.monotonic() - used, np.random.default_rng(seed)
    nodes = model.num_nodes
    links = sparse.coo_matrix((np.ones(len(model.source)), (model.source, model.target)), shape=(nodes, nodes))
    count, component = connected_components(links, directed=False) if nodes else (0, np.zeros(0, dtype=np.int64))
    component = _in_order_of_nodes(component, count)
    bound, method = np.zeros(count), np.zeros(count, dtype=np.int32)
    proof, infeasible = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=bool)
    labels = np.full(nodes, -1, dtype=np.int64)
    members = np.split(np.argsort(component, kind="stable"), np.bincount(component, minlength=count).cumsum()[:-1])
    edges = np.split(
        np.argsort(component[model.source], kind="stable"),
        np.bincount(component[model.source], minlength=count).cumsum()[:-1],
    )
    for name in range(count):
        if (np.diff(model.at)[members[name]] == 0).any():
            infeasible[name], bound[name] = True, -np.inf
            continue
        left = budget - (time.monotonic() - begun)
        part = model.part(members[name], edges[name])
        found, score, bound[name], method[name] = _search(part, max(left, 0.0) / (count - name), rng)
        if score > -np.inf:
            labels[members[name]] = found
            proof[name] = DUAL if bound[name] - score <= GAP * abs(score) else 0
    return Components(labels, component, bound, method, proof, infeasible)


def _in_order_of_nodes(component: np.ndarray, count: int) -> np.ndarray:
    """Components numbered by their first node, as the kernel does."""
    first = np.unique(component, return_index=True)[1]
    rank: np.ndarray = np.empty(count, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(count)
    numbered: np.ndarray = rank[component]
    return numbered


def _search(part: Ragged, budget: float, rng: np.random.Generator) -> tuple[np.ndarray, float, float, int]:
    """Labels, their score, a bound and the method, of one component."""
    begun = time.monotonic()
    group = np.zeros(part.num_nodes, dtype=np.int64)
    dual, best, score, bound, method = Dual(part), group, -np.inf, np.inf, DUAL
    local = _Local(part)
    restart = False
    while True:
        if not restart:
            before = bound
            dual.iterate()
            bound = min(bound, dual.bound)
        counts = np.diff(part.at)
        start = (rng.random(part.num_nodes) * counts).astype(np.int64) if restart else dual.labels.copy()
        for labels, way in ((start, DUAL), (local.improved(start.copy(), rng), LOCAL)):
            found = float(part.scores(labels, group, 1)[0]) / part.factor
            if found > score:
                best, score, method = labels, found, way
        restart = restart or before - bound < LEAST_FALL * (bound - score)
        if bound - score <= GAP * abs(score) or time.monotonic() - begun > budget:
            return best, score, max(bound, score), method


class _Local:
    """Single nodes that change state while that removes forbidden pairs or raises the score."""

    def __init__(self, part: Ragged) -> None:
        self.dual = Dual(part)  # for its tables, where forbidden pairs have a penalty

    def improved(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels that no change of a single node improves."""
        waiting = set(range(len(labels)))
        while waiting:
            for node in rng.permutation(sorted(waiting)).tolist():
                waiting.discard(node)
                value = self.dual.unary[node].copy()
                for other, edge, is_source in self.dual.arcs[node]:
                    value += self.dual.table(edge, is_source)[:, labels[other]]
                state = int(value.argmax())
                if value[state] > value[labels[node]] + 1e-12 * abs(value[state]):
                    labels[node] = state
                    waiting.update(other for other, _, _ in self.dual.arcs[node])
        return labels
