"""A field without padding: all replicas side by side, each node with its own possible states, in float64."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from accord.field import PairwiseField

LARGEST = 2.0**200  # potentials are divided by a power of two if one is larger, so that no sum can overflow


class Components(NamedTuple):
    """What was found, for each connected component of all replicas and graphs."""

    labels: np.ndarray  # [nodes]: state, counted among the node's possible ones; -1 where none was found
    component: np.ndarray  # [nodes]
    bound: np.ndarray  # [components]; -inf: it is proved that no labelling is allowed
    method: np.ndarray  # [components]: what found the labels, as in native/portfolio.hpp
    proof: np.ndarray  # [components]: what proved them best; 0: nothing did
    infeasible: np.ndarray  # [components]: it is proved that no labelling is allowed


@dataclass(frozen=True, eq=False)
class Ragged:
    """States of node v are numbered at[v] to at[v + 1]; tables[table_at[e] : table_at[e + 1]] is edge e's, by rows."""

    at: np.ndarray  # [nodes + 1]
    unary: np.ndarray  # [states of all nodes]
    source: np.ndarray  # [edges]
    target: np.ndarray  # [edges]
    table_at: np.ndarray  # [edges + 1]
    tables: np.ndarray  # [entries of all tables]
    state: np.ndarray  # [states of all nodes]: its number in the field
    factor: float  # potentials of the field, divided by those here

    @property
    def num_nodes(self) -> int:
        """Nodes of all replicas."""
        return len(self.at) - 1

    def part(self, nodes: np.ndarray, edges: np.ndarray) -> "Ragged":
        """Some nodes, which keep their order, and the edges between them."""
        place = np.zeros(self.num_nodes, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        states, at = _ranges(self.at, nodes)
        entries, table_at = _ranges(self.table_at, edges)
        return Ragged(
            at=at,
            unary=self.unary[states],
            source=place[self.source[edges]],
            target=place[self.target[edges]],
            table_at=table_at,
            tables=self.tables[entries],
            state=self.state[states],
            factor=self.factor,
        )

    def labels(self, chosen: np.ndarray) -> np.ndarray:
        """States of the field [nodes] from positions among the possible ones; -1 stays."""
        found = chosen >= 0
        result = np.full(self.num_nodes, -1, dtype=np.int64)
        result[found] = self.state[self.at[:-1][found] + chosen[found]]
        return result

    def scores(self, chosen: np.ndarray, group: np.ndarray, num_groups: int) -> np.ndarray:
        """Scores of groups of nodes, in the units of the field; -inf where a node has no label."""
        missing = np.bincount(group, weights=chosen < 0, minlength=num_groups) > 0
        state = self.at[:-1] + np.maximum(chosen, 0)
        total = np.bincount(group, weights=self.unary[state], minlength=num_groups)
        width = np.diff(self.at)[self.target]
        pair = np.maximum(chosen, 0)[self.source] * width + np.maximum(chosen, 0)[self.target]
        total += np.bincount(group[self.source], weights=self.tables[self.table_at[:-1] + pair], minlength=num_groups)
        return np.where(missing, -np.inf, total * self.factor)


def ragged(field: PairwiseField) -> Ragged:
    """The field without the states that its node potentials forbid."""
    return without_padding(field.edge_index, *field.expanded())


def without_padding(edge_index: Tensor, node_potentials: Tensor, edge_potentials: Tensor) -> Ragged:
    """The same from node [R, nodes, states] and edge [R, edges, states, states] potentials."""
    node, edge = (values.detach().double().cpu().numpy() for values in (node_potentials, edge_potentials))
    replicas, nodes, _ = node.shape
    source, target = edge_index.cpu().numpy()
    possible = node > -np.inf
    factor = _factor(node, edge)
    counts = possible.sum(-1).reshape(-1)
    at = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
    shift = (np.arange(replicas) * nodes)[:, None]
    sources, targets = ((ends[None] + shift).reshape(-1).astype(np.int64) for ends in (source, target))
    if possible.all():
        tables = edge.reshape(-1)
    else:
        kept = possible[:, source][..., :, None] & possible[:, target][..., None, :]
        tables = edge[kept]
    sizes = counts[sources] * counts[targets]
    return Ragged(
        at=at,
        unary=node[possible] / factor,
        source=sources,
        target=targets,
        table_at=np.concatenate([[0], sizes.cumsum()]).astype(np.int64),
        tables=tables if factor == 1 else tables / factor,
        state=np.nonzero(possible)[2],
        factor=factor,
    )


def _ranges(at: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of some rows, one row after the other, and where each row begins."""
    sizes = at[which + 1] - at[which]
    begin = np.concatenate([[0], sizes.cumsum()]).astype(np.int64)
    return np.arange(begin[-1]) + np.repeat(at[which] - begin[:-1], sizes), begin


def _factor(node: np.ndarray, edge: np.ndarray) -> float:
    largest = max(
        (float(np.abs(values[values > -np.inf]).max(initial=0.0)) for values in (node, edge)),
        default=0.0,
    )
    return 2.0 ** np.ceil(np.log2(largest / LARGEST)) if largest > LARGEST else 1.0
