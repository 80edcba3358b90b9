"""Sequential tree-reweighted message passing (Kolmogorov 2006) in plain numpy: an upper bound that always holds.

Messages move potential between edges and nodes. With total_v = unary_v + sum of messages into v, for any messages

    score(x) = sum_v total_v(x_v) + sum_(v,w) [ table_vw(x_v, x_w) - message_vw(x_w) - message_wv(x_v) ].

A pass visits all nodes in order. Every edge to a node that is still to come gets a share of total_v, and its message
becomes the best value over x_v of share * total_v(x_v) - message_wv(x_v) + table_vw(x_v, x_w), less its peak. The
bound is the sum of the peaks of a pass and of what the shares left of each node's best total. This is the reference of
native/trws.hpp, which does the same.
"""

import numpy as np

from accord.inference.search._ragged import Ragged

PENALTY = 1e-6  # the least margin of the penalty of a forbidden pair, relative to the range of all scores


class Dual:
    """Messages of a field without padding, and the bound and labelling of the last iteration."""

    def __init__(self, model: Ragged) -> None:
        self.unary = [model.unary[a:b].copy() for a, b in zip(model.at[:-1], model.at[1:], strict=True)]
        self.arcs: list[list[tuple[int, int, bool]]] = [[] for _ in self.unary]  # (other end, edge, node is the source)
        self.tables: list[np.ndarray] = []
        self.messages: list[tuple[np.ndarray, np.ndarray]] = []  # of an edge: to its target, to its source
        penalty = self._penalty(model)
        for edge, (source, target) in enumerate(zip(model.source.tolist(), model.target.tolist(), strict=True)):
            table = model.tables[model.table_at[edge] : model.table_at[edge + 1]]
            lowest = table[table > -np.inf].min(initial=0.0)
            table = np.where(table == -np.inf, lowest - penalty, table).reshape(len(self.unary[source]), -1)
            self.tables.append(table)
            self.messages.append((np.zeros(table.shape[1]), np.zeros(table.shape[0])))
            self.arcs[source].append((target, edge, True))
            self.arcs[target].append((source, edge, False))
        self.bound = np.inf
        self.labels = np.zeros(len(self.unary), dtype=np.int64)

    @staticmethod
    def _penalty(model: Ragged) -> float:
        """More than two allowed labellings can differ, so a forbidden pair is never worth its penalty."""
        finite = model.tables[model.tables > -np.inf]
        largest = np.abs(np.concatenate([model.unary, finite, [0.0]])).max()
        return float(2 * largest * (len(model.at) + len(model.source)) * (1 + PENALTY) + 1)

    def table(self, edge: int, from_source: bool) -> np.ndarray:
        """Rows are states of the node that sends."""
        return self.tables[edge] if from_source else self.tables[edge].T

    def total(self, node: int) -> np.ndarray:
        """Potential of a node's states with all messages into it."""
        return self.unary[node] + sum(self.messages[edge][is_source] for _, edge, is_source in self.arcs[node])

    def iterate(self) -> None:
        """A pass forwards, which also labels the nodes, and a pass backwards, which gives the bound."""
        nodes = range(len(self.unary))
        for node in nodes:
            self._label(node)
            self._visit(node, ahead=True)
        self.bound = sum(self._visit(node, ahead=False) for node in reversed(nodes))

    def _label(self, node: int) -> None:
        """The best state given the labels of earlier nodes and the messages from later ones."""
        given = self.unary[node].copy()
        for other, edge, is_source in self.arcs[node]:
            earlier = other < node
            given += self.table(edge, is_source)[:, self.labels[other]] if earlier else self.messages[edge][is_source]
        self.labels[node] = given.argmax()

    def _visit(self, node: int, ahead: bool) -> float:
        total = self.total(node)
        later = sum(other > node for other, _, _ in self.arcs[node])
        share = 1 / max(1, later, len(self.arcs[node]) - later)
        left, peaks = 1.0, 0.0
        for other, edge, is_source in self.arcs[node]:
            if (other > node) != ahead:
                continue
            incoming, outgoing = self.messages[edge][is_source], self.messages[edge][not is_source]
            sent = (share * total - incoming)[:, None] + self.table(edge, is_source)
            best = sent.max(0)
            outgoing[:] = best - best.max()
            peaks += float(best.max())
            left -= share
        return peaks + max(left, 0.0) * float(total.max())
