"""The search without a compiler: enumeration of small components, else a dual bound and changes of single nodes.

Much slower than the C++ kernel, and with fewer methods, but with the same guarantees: the bound holds, and labels are
allowed or -1.
"""

import time
from dataclasses import replace

import numpy as np

from accord.inference.search._dual import Dual
from accord.inference.search._ragged import Components, Ragged

GAP = 1e-9  # relative to the score; a smaller gap counts as closed
ELIMINATION, DUAL, LOCAL = 1, 2, 3  # as in native/portfolio.hpp
ENUMERATED = 14  # bits: components with fewer labellings are solved by looking at all of them
LEAST_FALL = 1e-7  # of the bound in an iteration, relative to the gap: less has converged


def solve(
    model: Ragged,
    budget: float,
    seed: int,
    used: float = 0.0,
    passes: int | None = None,
    start: np.ndarray | None = None,
    later: object = None,
) -> Components:
    """What `_native.solve` returns, as far as it is found in `budget` seconds, of which some are used.

    Args:
        model: the field.
        budget: seconds.
        seed: of the random choices.
        used: seconds of the budget that have passed.
        passes: end after so many passes of the dual or restarts, whatever time they take.
        start: [nodes], labels from which the search begins; -1 leaves a node open.
        later: ignored; without a compiled kernel, decoding is as slow as this search.
    """
    begun, rng = time.monotonic() - used, np.random.default_rng(seed)
    component = model.components()
    count = int(component.max(initial=-1)) + 1
    bound, method = np.zeros(count), np.zeros(count, dtype=np.int32)
    proof, infeasible = np.zeros(count, dtype=np.int32), np.zeros(count, dtype=bool)
    labels = np.full(model.num_nodes, -1, dtype=np.int64)
    for name in range(count):
        nodes = np.nonzero(component == name)[0]
        part, states = _possible(model.part(nodes, np.nonzero(component[model.home] == name)[0]))
        if (np.diff(part.at) == 0).any():
            infeasible[name], bound[name] = True, -np.inf
            continue
        if np.log2(np.diff(part.at)).sum() <= ENUMERATED:
            found, score, way = _enumerate(part)
            bound[name], method[name], proof[name] = score, way, way
            infeasible[name] = score == -np.inf
        else:
            left = budget - (time.monotonic() - begun)
            first = None if start is None else _places(part, states, start[nodes])
            share = max(left, 0.0) / (count - name)
            found, score, bound[name], method[name] = _search(part, share, rng, passes, first)
            proof[name] = DUAL if score > -np.inf and bound[name] - score <= GAP * abs(score) else 0
        if score > -np.inf:
            labels[nodes] = states[part.at[:-1] + found]
    return Components(labels, component, bound, method, proof, infeasible)


def _possible(part: Ragged) -> tuple[Ragged, np.ndarray]:
    """The model without forbidden states, and the numbers of those that stay."""
    kept = part.unary > -np.inf
    states = np.concatenate([np.zeros(0, dtype=np.int64), *map(np.arange, np.diff(part.at))])[kept]
    if kept.all():
        return part, states
    counts = np.add.reduceat(kept, part.at[:-1]) if len(kept) else np.diff(part.at)
    counts = np.where(np.diff(part.at) > 0, counts, 0)
    possible = [np.nonzero(kept[a:b])[0] for a, b in zip(part.at[:-1], part.at[1:], strict=True)]
    tables = [np.zeros(0)]
    for factor, (begin, size) in enumerate(zip(part.table_at, part.sizes, strict=True)):
        scope = part.scope[part.scope_at[factor] : part.scope_at[factor + 1]]
        table = part.tables[begin : begin + size].reshape(np.diff(part.at)[scope])
        tables.append(table[np.ix_(*(possible[node] for node in scope))].reshape(-1))
    sizes = np.array([len(table) for table in tables], dtype=np.int64)
    at = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    begins = sizes.cumsum()[:-1]
    reduced = replace(part, at=at, unary=part.unary[kept], table_at=begins, tables=np.concatenate(tables))
    return reduced, states


def _enumerate(part: Ragged) -> tuple[np.ndarray, float, int]:
    """Labels, their score and the method, by looking at all labellings."""
    counts = np.diff(part.at)
    total = np.zeros(counts)
    for node, (a, b) in enumerate(zip(part.at[:-1], part.at[1:], strict=True)):
        total = total + part.unary[a:b].reshape([-1 if node == other else 1 for other in range(len(counts))])
    for factor, (begin, size) in enumerate(zip(part.table_at, part.sizes, strict=True)):
        scope = part.scope[part.scope_at[factor] : part.scope_at[factor + 1]]
        table = part.tables[begin : begin + size].reshape(counts[scope]).transpose(np.argsort(scope))
        total = total + table.reshape([count if node in scope else 1 for node, count in enumerate(counts)])
    best = int(total.argmax())
    return np.array(np.unravel_index(best, total.shape)), float(total.flat[best]), ELIMINATION


def _places(part: Ragged, states: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Where labels are among the states that stay; 0 for those that do not."""
    node = np.repeat(np.arange(part.num_nodes), np.diff(part.at))
    kept = np.nonzero(states == labels[node])[0]
    places = np.zeros(part.num_nodes, dtype=np.int64)
    places[node[kept]] = kept - part.at[node[kept]]
    return places


def _search(
    part: Ragged, budget: float, rng: np.random.Generator, passes: int | None, first: np.ndarray | None
) -> tuple[np.ndarray, float, float, int]:
    """Labels, their score, a bound and the method, of one component."""
    begun = time.monotonic()
    group = np.zeros(part.num_nodes, dtype=np.int64)
    dual, best, score, bound, method = Dual(part), group, -np.inf, np.inf, DUAL
    local = _Local(part)
    restart, counts, done = False, np.diff(part.at), 0
    while True:
        if not restart:
            before = bound
            dual.iterate()
            bound = min(bound, dual.bound)
        start = (rng.random(part.num_nodes) * counts).astype(np.int64) if restart else dual.labels.copy()
        if first is not None:
            start, first = first, None
        for labels, way in ((start, DUAL), (local.improved(start.copy(), rng), LOCAL)):
            found = float(part.scores(labels, group, 1)[0]) / part.factor
            if found > score:
                best, score, method = labels, found, way
        restart = restart or before - bound < LEAST_FALL * (bound - score)
        done += 1
        late = time.monotonic() - begun > budget if passes is None else done >= passes
        if late or bound - score <= GAP * abs(score):
            return best, score, max(bound, score), method


class _Local:
    """Single nodes that change state while that removes forbidden combinations or raises the score."""

    def __init__(self, part: Ragged) -> None:
        self.dual = Dual(part)  # for its tables, where forbidden combinations have a penalty

    def improved(self, labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels that no change of a single node improves."""
        waiting = set(range(len(labels)))
        while waiting:
            for node in rng.permutation(sorted(waiting)).tolist():
                waiting.discard(node)
                value = self.dual.unary[node].copy()
                for factor, axis in self.dual.around[node]:
                    value += self.dual.given(factor, axis, labels)
                state = int(value.argmax())
                if value[state] > value[labels[node]] + 1e-12 * abs(value[state]):
                    labels[node] = state
                    waiting.update(other for factor, _ in self.dual.around[node] for other in self.dual.scopes[factor])
        return labels
