"""A field without padding: all replicas side by side, each node with its own states, in float64."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from torch import Tensor

from accord.field import PairwiseField
from accord.field.factors import FactorField, flatten
from accord.inference.search._rules import tabulate_short_rules

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
    """States of node v are numbered at[v] to at[v + 1]; factor f joins the nodes scope[scope_at[f] : scope_at[f + 1]].

    Its table begins at tables[table_at[f]], and the state of the last node changes fastest. Factors may share a table.
    Nodes of a field with rules are followed by those that express the rules as tables; `num_own` counts the former.
    """

    at: np.ndarray  # [nodes + 1]
    unary: np.ndarray  # [states of all nodes]
    scope_at: np.ndarray  # [factors + 1]
    scope: np.ndarray  # [nodes of all factors]
    table_at: np.ndarray  # [factors]
    tables: np.ndarray  # [entries of all tables]
    state: np.ndarray  # [states of all nodes]: its number in the field
    graph: np.ndarray  # [nodes of one replica]
    num_own: int  # nodes of the field itself in each replica
    distinct: bool  # all factors have two nodes, and no two of them the same ones
    factor: float  # potentials of the field, divided by those here

    @property
    def num_nodes(self) -> int:
        """Nodes of all replicas."""
        return len(self.at) - 1

    @property
    def num_factors(self) -> int:
        """Factors of all replicas."""
        return len(self.table_at)

    @property
    def sizes(self) -> np.ndarray:
        """[factors]: entries of each table."""
        sizes = np.ones(self.num_factors, dtype=np.int64)
        np.multiply.at(sizes, self.owner, np.diff(self.at)[self.scope])
        return sizes

    @property
    def owner(self) -> np.ndarray:
        """[nodes of all factors]: which factor each entry of `scope` belongs to."""
        return np.repeat(np.arange(self.num_factors), np.diff(self.scope_at))

    @property
    def home(self) -> np.ndarray:
        """[factors]: the first node of each."""
        nodes: np.ndarray = self.scope[self.scope_at[:-1]]
        return nodes

    def part(self, nodes: np.ndarray, factors: np.ndarray) -> "Ragged":
        """Some nodes, which keep their order, and the factors among them."""
        place = np.zeros(self.num_nodes, dtype=np.int64)
        place[nodes] = np.arange(len(nodes))
        states, at = _ranges(self.at, nodes)
        members, scope_at = _ranges(self.scope_at, factors)
        sizes = self.sizes[factors]
        begin = np.concatenate([[0], sizes.cumsum()]).astype(np.int64)
        entries = np.arange(begin[-1]) + np.repeat(self.table_at[factors] - begin[:-1], sizes)
        return Ragged(
            at=at,
            unary=self.unary[states],
            scope_at=scope_at,
            scope=place[self.scope[members]],
            table_at=begin[:-1],
            tables=self.tables[entries],
            state=self.state[states],
            graph=np.zeros(len(nodes), dtype=np.int64),
            num_own=len(nodes),
            distinct=self.distinct,
            factor=self.factor,
        )

    def labels(self, chosen: np.ndarray) -> np.ndarray:
        """States of the field [nodes] from positions among the possible ones; -1 stays."""
        found = chosen >= 0
        result = np.full(self.num_nodes, -1, dtype=np.int64)
        result[found] = self.state[self.at[:-1][found] + chosen[found]]
        return result

    def own_labels(self, chosen: np.ndarray) -> np.ndarray:
        """The same for the field's own nodes [replicas * own nodes]."""
        own = np.arange(self.num_nodes) % max(1, len(self.graph)) < self.num_own
        return self.labels(chosen)[own]

    def whole(self, labels: np.ndarray) -> np.ndarray:
        """States of all nodes [nodes] from those of the field itself [replicas, own nodes]; -1 at added nodes."""
        states = np.full((len(labels), len(self.graph)), -1, dtype=np.int64)
        states[:, : self.num_own] = labels
        return states.reshape(-1)

    def places(self, labels: np.ndarray) -> np.ndarray:
        """The reverse of `labels`: where states of the field are among the possible ones; -1 where they are not."""
        node = np.repeat(np.arange(self.num_nodes), np.diff(self.at))
        here = np.nonzero(self.state == labels[node])[0]
        places = np.full(self.num_nodes, -1, dtype=np.int64)
        places[node[here]] = here - self.at[node[here]]
        return places

    def components(self) -> np.ndarray:
        """[nodes]: connected components, numbered by their first node."""
        import scipy.sparse as sparse  # scipy is slow to load, and most calls do not need it
        from scipy.sparse.csgraph import connected_components

        nodes = self.num_nodes
        ends = (self.scope, nodes + self.owner)
        links = sparse.coo_matrix((np.ones(len(ends[0])), ends), shape=(nodes + self.num_factors,) * 2)
        found = connected_components(links, directed=False)[1][:nodes]
        _, first, name = np.unique(found, return_index=True, return_inverse=True)
        rank = np.empty(len(first), dtype=np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        numbered: np.ndarray = rank[name]
        return numbered

    def scores(self, chosen: np.ndarray, group: np.ndarray, num_groups: int) -> np.ndarray:
        """Scores of groups of nodes, in the units of the field; -inf where a node has no label."""
        missing = np.bincount(group, weights=chosen < 0, minlength=num_groups) > 0
        label = np.maximum(chosen, 0)
        total = np.bincount(group, weights=self.unary[self.at[:-1] + label], minlength=num_groups)
        if self.num_factors:
            values = self.tables[self.table_at + self._entries(label)]
            total += np.bincount(group[self.home], weights=values, minlength=num_groups)
        return np.where(missing, -np.inf, total * self.factor)

    def _entries(self, label: np.ndarray) -> np.ndarray:
        """[factors]: which entry of its table each factor has."""
        counts, orders = np.diff(self.at), np.diff(self.scope_at)
        place = np.zeros(self.num_factors, dtype=np.int64)
        for axis in range(int(orders.max())):
            has = orders > axis
            node = self.scope[self.scope_at[:-1][has] + axis]
            place[has] = place[has] * counts[node] + label[node]
        return place


def ragged(field: PairwiseField | FactorField) -> Ragged:
    """The field, with rules as tables."""
    if isinstance(field, FactorField):
        return _with_factors(field)
    return without_padding(field.edge_index, *field.expanded(), field.graph)


def without_padding(edge_index: Tensor, node_potentials: Tensor, edge_potentials: Tensor, graph: Tensor) -> Ragged:
    """Pairwise node [R, nodes, states] and edge [R, edges, states, states] potentials, without forbidden states."""
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
        scope_at=2 * np.arange(len(sources) + 1),
        scope=np.stack([sources, targets], axis=1).reshape(-1),
        table_at=(sizes.cumsum() - sizes).astype(np.int64),
        tables=tables if factor == 1 else tables / factor,
        state=np.nonzero(possible)[2],
        graph=graph.cpu().numpy(),
        num_own=nodes,
        distinct=True,
        factor=factor,
    )


def _with_factors(field: FactorField) -> Ragged:
    """Forbidden states stay; the search leaves them out."""
    flat = flatten(tabulate_short_rules(field))
    unary, tables = (values.detach().double().cpu().numpy() for values in (flat.unary, flat.tables))
    states, scope, orders, table_at = (
        values.cpu().numpy() for values in (flat.states, flat.scope, flat.scope_at.diff(), flat.table_at)
    )
    replicas, shared = len(unary), len(tables) == 1
    factor = _factor(unary, tables)
    each = np.arange(replicas)[:, None]
    length = 0 if shared else tables.shape[1]
    return Ragged(
        at=np.concatenate([[0], np.tile(states, replicas).cumsum()]).astype(np.int64),
        unary=unary.reshape(-1) / factor,
        scope_at=np.concatenate([[0], np.tile(orders, replicas).cumsum()]).astype(np.int64),
        scope=(scope + len(states) * each).reshape(-1),
        table_at=(table_at + length * each).reshape(-1),
        tables=tables.reshape(-1) if factor == 1 else tables.reshape(-1) / factor,
        state=np.concatenate([[], *map(np.arange, states)] * replicas).astype(np.int64),
        graph=flat.graph.cpu().numpy(),
        num_own=flat.num_own,
        distinct=False,
        factor=factor,
    )


def _ranges(at: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of some rows, one row after the other, and where each row begins."""
    sizes = at[which + 1] - at[which]
    begin = np.concatenate([[0], sizes.cumsum()]).astype(np.int64)
    return np.arange(begin[-1]) + np.repeat(at[which] - begin[:-1], sizes), begin


def _factor(node: np.ndarray, tables: np.ndarray) -> float:
    largest = max(
        (float(np.abs(values[values > -np.inf]).max(initial=0.0)) for values in (node, tables)),
        default=0.0,
    )
    return 2.0 ** np.ceil(np.log2(largest / LARGEST)) if largest > LARGEST else 1.0
