"""Sequential reweighted message passing (Kolmogorov 2006, 2015) in plain numpy: an upper bound that always holds.

Messages move potential between factors and nodes. With total_v = unary_v + sum of messages into v, for any messages

    score(x) = sum_v total_v(x_v) + sum_f [ table_f(x_f) - sum_(v in f) message_fv(x_v) ].

A pass visits all nodes in order. First the messages into v from factors with a node that was visited earlier become the
best value of the table plus the parts of the other nodes, less its peak. Then every factor with a node still to come
gets a share of total_v: the part of v in it is share * total_v - message_fv, and -message_fv in the others. The bound
is the sum of the peaks of each factor's last message and of what the shares left of each node's best total. This is the
reference of native/bounds/trws.hpp, which does the same.
"""

import numpy as np

from accord.inference.search._ragged import Ragged

PENALTY = 1e-6  # the least margin of the penalty of a forbidden combination, relative to the range of all scores


class Dual:
    """Messages of a field without padding, and the bound and labelling of the last iteration."""

    def __init__(self, model: Ragged) -> None:
        self.unary = [model.unary[a:b].copy() for a, b in zip(model.at[:-1], model.at[1:], strict=True)]
        self.around: list[list[tuple[int, int]]] = [[] for _ in self.unary]  # (factor, axis)
        self.scopes: list[list[int]] = []
        self.tables: list[np.ndarray] = []
        self.messages: list[list[np.ndarray]] = []  # of a factor: into each of its nodes
        self.parts: list[list[np.ndarray]] = []
        penalty = self._penalty(model)
        for factor, (begin, size) in enumerate(zip(model.table_at.tolist(), model.sizes.tolist(), strict=True)):
            scope = model.scope[model.scope_at[factor] : model.scope_at[factor + 1]].tolist()
            table = model.tables[begin : begin + size]
            lowest = table[table > -np.inf].min(initial=0.0)
            counts = [len(self.unary[node]) for node in scope]
            self.tables.append(np.where(table == -np.inf, lowest - penalty, table).reshape(counts))
            self.messages.append([np.zeros(count) for count in counts])
            self.parts.append([np.zeros(count) for count in counts])
            self.scopes.append(scope)
            for axis, node in enumerate(scope):
                self.around[node].append((factor, axis))
        self.bound = np.inf
        self.labels = np.zeros(len(self.unary), dtype=np.int64)

    @staticmethod
    def _penalty(model: Ragged) -> float:
        """More than two allowed labellings can differ, so a forbidden combination is never worth its penalty."""
        finite = model.tables[model.tables > -np.inf]
        largest = np.abs(np.concatenate([model.unary, finite, [0.0]])).max()
        return float(2 * largest * (len(model.at) + model.num_factors) * (1 + PENALTY) + 1)

    def given(self, factor: int, axis: int, labels: np.ndarray) -> np.ndarray:
        """Values of a factor for each state of one of its nodes, if the others have labels."""
        scope = self.scopes[factor]
        index = tuple(slice(None) if other == axis else labels[scope[other]] for other in range(len(scope)))
        values: np.ndarray = self.tables[factor][index]
        return values

    def total(self, node: int) -> np.ndarray:
        """Potential of a node's states with all messages into it."""
        return self.unary[node] + sum(self.messages[factor][axis] for factor, axis in self.around[node])

    def iterate(self) -> None:
        """A pass forwards, which also labels the nodes, and a pass backwards, which gives the bound."""
        nodes = range(len(self.unary))
        for node in nodes:
            self._label(node)
            self._visit(node, ahead=True)
        self.bound = sum(self._visit(node, ahead=False) for node in reversed(nodes))

    def _label(self, node: int) -> None:
        """The best state given the labels of earlier nodes and the messages or parts of later ones."""
        value = self.unary[node].copy()
        for factor, axis in self.around[node]:
            first = node == min(self.scopes[factor])
            value += self.messages[factor][axis] if first else self._best(factor, axis, node)
        self.labels[node] = value.argmax()

    def _best(self, factor: int, axis: int, labelled: int = -1) -> np.ndarray:
        """The best value for each state of an axis, where nodes before `labelled` have labels."""
        scope, values = self.scopes[factor], self.tables[factor]
        for other, node in enumerate(scope):
            if other == axis:
                continue
            if node < labelled:
                values = values.take([self.labels[node]], axis=other)
            else:
                shape = [-1 if each == other else 1 for each in range(len(scope))]
                values = values + self.parts[factor][other].reshape(shape)
        best: np.ndarray = values.max(tuple(other for other in range(len(scope)) if other != axis))
        return best

    def _visit(self, node: int, ahead: bool) -> float:
        peaks, later, earlier = 0.0, 0, 0
        for factor, axis in self.around[node]:
            first, last = min(self.scopes[factor]), max(self.scopes[factor])
            later, earlier = later + (node != last), earlier + (node != first)
            if node == (first if ahead else last):
                continue  # nothing has changed since the last pass
            best = self._best(factor, axis)
            self.messages[factor][axis] = best - best.max()
            if node == (last if ahead else first):
                peaks += float(best.max())
        total, left = self.total(node), 1.0
        for factor, axis in self.around[node]:
            last = max(self.scopes[factor]) if ahead else min(self.scopes[factor])
            share = 0.0 if node == last else 1 / max(1, later, earlier)
            self.parts[factor][axis] = share * total - self.messages[factor][axis]
            left -= share
        return peaks + max(left, 0.0) * float(total.max())
