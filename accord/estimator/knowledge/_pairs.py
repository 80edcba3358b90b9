"""Pairs of labels on edges: barred ones, required ones, and preferences in nats; on all edges or on single ones."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from accord.errors import InputTypeError, OptionError
from accord.estimator.knowledge._known import States
from accord.estimator.knowledge._places import Places

MOST_NATS = 1000.0  # of a preference; a stronger one is a constraint
PAIRS = (
    "Give a list of pairs of labels, such as [('a', 'b')], or a dict from edges to such lists, {(0, 1): [('a', 'b')]}."
)
PREFERENCES = (
    "Give numbers by label, {'a': 0.5}, or by pair of labels, {('a', 'b'): 1.5}; for a single node or edge a dict of "
    "these, {7: {'a': 0.5}, (0, 1): {('a', 'b'): 1.5}}."
)


def is_of_each_graph(given: object) -> bool:
    """Whether constraints are a list with one entry for each graph: dictionaries, or None for no constraint."""
    return (
        isinstance(given, Sequence)
        and not isinstance(given, str)
        and len(given) > 0
        and all(entry is None or isinstance(entry, Mapping) for entry in given)
    )


@dataclass(eq=False)
class PairTables:
    """What is barred and preferred in one graph; edge tables are indexed [state of source, state of target].

    Pairs are a list for every edge, or a dict from edges to lists, in which None stands for every edge.

    Values for all nodes or edges are kept once. Those of single ones are made when there are any.

    Args:
        places: nodes and edges of the graph.
        states: of the model.
        both_ways: [edges], True where the graph lists the edge in both directions.
    """

    places: Places
    states: States
    both_ways: Tensor

    def __post_init__(self) -> None:
        count, edges, nodes = self.states.num_states, self.places.edge_index.shape[1], self.places.num_nodes
        self.barred = torch.zeros(1, count, count, dtype=torch.bool)
        self.edge = torch.zeros(1, count, count)
        self.node = torch.zeros(1, count)
        self._edges, self._nodes = edges, nodes

    def forbid(self, given: Any, option: str = "forbid") -> None:
        """Bar pairs in both orders."""
        for edge, pairs in self._listed(given, option):
            table = self._table(pairs, option)
            self._bar(edge, table | table.t())

    def require(self, given: Any, option: str = "require") -> None:
        """Bar all other pairs than these, which are allowed in both orders."""
        for edge, pairs in self._listed(given, option):
            table = self._table(pairs, option)
            if not bool(table.any()):
                raise OptionError(f"{self.places.where}: {option} lists no pair, so nothing would be allowed. {PAIRS}")
            self._bar(edge, ~(table | table.t()))

    def forbid_directed(self, given: Any, option: str = "forbid_directed") -> None:
        """Bar (source, target) in each direction in which `edge_index` lists an edge; for a single edge as named."""
        for edge, pairs in self._listed(given, option):
            table = self._table(pairs, option)
            if edge is not None:
                column, turned = edge
                self._bar(edge, table.t() if turned else table)
                continue
            whole = table.expand(self._edges, -1, -1)
            self.barred = self.barred | torch.where(self.both_ways[:, None, None], whole | whole.mT, whole)

    def prefer(self, given: Any, option: str = "prefer") -> None:
        """Add nats to labels at nodes and to pairs on edges."""
        if not isinstance(given, Mapping):
            raise InputTypeError(f"{self.places.where}: {option} is a {type(given).__name__}. {PREFERENCES}")
        for key, value in given.items():
            pair = isinstance(key, Sequence) and not isinstance(key, str)
            if not isinstance(value, Mapping):
                if pair:
                    self.edge = self.edge + self._nats_of_pairs({key: value}, option)
                else:
                    self.node = self.node + self._nats_of_labels({key: value}, option)
            elif pair:
                column, _ = self.places.edge(key, option)
                self.edge = self.edge.expand(self._edges, -1, -1).clone()
                self.edge[column] += self._nats_of_pairs(value, option)
            else:
                node = self.places.node(key, option)
                self.node = self.node.expand(self._nodes, -1).clone()
                self.node[node] += self._nats_of_labels(value, option)

    def _bar(self, edge: tuple[int, bool] | None, table: Tensor) -> None:
        if edge is None:
            self.barred = self.barred | table
            return
        if len(self.barred) != self._edges or self.barred.stride(0) == 0:
            self.barred = self.barred.expand(self._edges, -1, -1).clone()
        self.barred[edge[0]] |= table

    def _listed(self, given: Any, option: str) -> Iterable[tuple[tuple[int, bool] | None, Any]]:
        """Edges (None for all) with their pairs."""
        if isinstance(given, Mapping):
            return [(None if key is None else self.places.edge(key, option), pairs) for key, pairs in given.items()]
        return [(None, given)]

    def _table(self, pairs: Any, option: str) -> Tensor:
        """[states, states], True for the listed pairs in the order given."""
        if isinstance(pairs, Tensor):
            pairs = pairs.tolist()
        if not isinstance(pairs, (Sequence, set, frozenset)) or isinstance(pairs, str):
            raise InputTypeError(f"{self.places.where}: {option} holds a {type(pairs).__name__}. {PAIRS}")
        table = torch.zeros(self.states.num_states, self.states.num_states, dtype=torch.bool)
        for pair in pairs:
            table[self._pair(pair, option)] = True
        return table

    def _pair(self, pair: Any, option: str) -> tuple[int, int]:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InputTypeError(f"{self.places.where}: {option} holds {str(pair)[:80]!r}, which is no pair. {PAIRS}")
        first, second = (self.states.of(label, option) for label in pair)
        return first, second

    def _nats_of_pairs(self, given: Mapping[Any, Any], option: str) -> Tensor:
        table = torch.zeros(self.states.num_states, self.states.num_states)
        for pair, value in given.items():
            first, second = self._pair(pair, option)
            table[first, second] += self._nats(value, option)
            if first != second:
                table[second, first] += self._nats(value, option)
        return table

    def _nats_of_labels(self, given: Mapping[Any, Any], option: str) -> Tensor:
        row = torch.zeros(self.states.num_states)
        for label, value in given.items():
            row[self.states.of(label, option)] += self._nats(value, option)
        return row

    def _nats(self, value: object, option: str) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise InputTypeError(
                f"{self.places.where}: {option} holds {str(value)[:80]!r}, but a number (nats) is needed. {PREFERENCES}"
            )
        number = float(value)
        if not math.isfinite(number) or abs(number) > MOST_NATS:
            raise OptionError(
                f"{self.places.where}: {option} holds {number:g} nats; numbers from {-MOST_NATS:g} to {MOST_NATS:g} "
                "are allowed. Use known, forbid or require for what is certain."
            )
        return number
