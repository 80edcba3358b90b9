"""Elimination in torch for pairwise fields: cliques of one size and depth are processed together, on any device.

Nodes with a single possible state (clamped labels) are removed first, and with them the loops that run through them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field.factors import FlatField
from accord.inference._semiring import REDUCE, Reduction
from accord.inference.exact._junction import Junction, build_junction
from accord.inference.exact._limits import Limits, too_large_clique, too_large_tables
from accord.inference.exact._order import find_cliques
from accord.inference.exact._passes import Collected, backtrack, collect, distribute
from accord.inference.exact._solution import Solution

MAX_CLIQUE = 60  # torch tensors have at most 64 axes


def solve_layered(flat: FlatField, semiring: str, limits: Limits) -> Solution:
    """Totals, beliefs and best labels of a pairwise field; differentiable.

    Raises:
        TooLargeError: it is too wide for the limits.
    """
    tree = clique_tree(flat, limits)
    collected = tree.collect(REDUCE[semiring])
    node, edge = tree.beliefs(collected, REDUCE[semiring])
    with torch.no_grad():
        best = collected if semiring == "max" else tree.collect(REDUCE["max"])
        labels = tree.backtrack(best, lambda given: given.argmax(-1))[0]
    return Solution(tree.totals(collected), node.flatten(1), edge.flatten(1), labels)


@dataclass(frozen=True, eq=False)
class CliqueTree:
    """A field ready for elimination: edges at fixed nodes are added to the potentials of their other ends."""

    flat: FlatField
    edge_index: Tensor  # [2, edges]
    node: Tensor  # [R, nodes, states]
    edge: Tensor  # [R, kept edges, states, states]
    kept: Tensor  # [kept edges]: columns of the edge index
    junction: Junction  # of the kept edges

    def collect(self, reduce: Reduction) -> Collected:
        """Messages to the roots."""
        return collect(self.junction, self.node, self.edge, reduce)

    def totals(self, collected: Collected) -> Tensor:
        """Log Z or the best score [R, graphs]."""
        constants = collected.constants
        return constants.new_zeros(len(constants), self.flat.num_graphs).index_add(1, self.flat.graph, constants)

    def beliefs(self, collected: Collected, reduce: Reduction) -> tuple[Tensor, Tensor]:
        """Normalised beliefs of all nodes and edges, [R, nodes, states] and [R, edges, states, states]."""
        node, edge = distribute(self.junction, collected, reduce)
        node = node - reduce(node, dim=-1, keepdim=True)
        edge = edge - reduce(edge, dim=(-2, -1), keepdim=True)
        if len(self.kept) < self.edge_index.shape[1]:
            # One end of a folded edge is fixed, so its two ends are independent.
            source, target = self.edge_index
            apart = node[:, source, :, None] + node[:, target, None, :]
            edge = apart.index_copy(1, self.kept, edge)
        return node, edge

    def backtrack(self, collected: Collected, choose: Callable[[Tensor], Tensor], num_samples: int = 1) -> Tensor:
        """Label the nodes from the roots outwards: [num_samples, R, nodes]."""
        return backtrack(self.junction, collected, choose, num_samples)


def clique_tree(flat: FlatField, limits: Limits) -> CliqueTree:
    """Fold fixed nodes, find an elimination order for the others, and lay out its cliques."""
    states = int(flat.states[0]) if flat.num_nodes else 1
    node = flat.unary.reshape(len(flat.unary), flat.num_nodes, states)
    edge = flat.tables.reshape(len(flat.unary), flat.num_factors, states, states)
    index = flat.scope.reshape(-1, 2).t()
    node, kept = _fold_fixed(index, node, edge)
    cliques = _checked_cliques(index[:, kept], node, limits)
    return CliqueTree(flat, index, node, edge[:, kept], kept, build_junction(index[:, kept], cliques))


def _fold_fixed(edge_index: Tensor, node: Tensor, edge: Tensor) -> tuple[Tensor, Tensor]:
    """Add edges at fixed nodes, which have one possible state in every replica, to the potentials of their other ends.

    Returns the new node potentials, and the edges that remain.
    """
    possible = node.detach() > -torch.inf
    fixed = (possible.sum(-1) <= 1).all(0)
    state = possible.long().argmax(-1)
    source, target = edge_index
    # An edge between two fixed nodes counts once, with its source.
    for near, far, tables, folded in (
        (source, target, edge, fixed[source]),
        (target, source, edge.mT, fixed[target] & ~fixed[source]),
    ):
        row = state[:, near[folded], None, None].expand(-1, -1, 1, node.shape[-1])
        node = node.index_add(1, far[folded], tables[:, folded].gather(2, row)[:, :, 0])
    return node, (~fixed[source] & ~fixed[target]).nonzero().flatten()


def _checked_cliques(edge_index: Tensor, node: Tensor, limits: Limits) -> list[list[int]]:
    """The cliques of an elimination; raises TooLargeError if their tables are too large."""
    replicas, num_nodes, num_states = node.shape
    entries = [max(replicas, 1) * num_states**size for size in range(MAX_CLIQUE + 1)]
    widest = sum(count <= limits.one for count in entries) - 1
    cliques = find_cliques(edge_index, num_nodes, widest)
    too_wide = [len(clique) for clique in cliques if len(clique) > widest]
    if too_wide:
        raise too_large_clique([num_states] * min(too_wide), replicas, limits)
    # Tables of pairs are not counted: they are no larger than the field's own.
    together = sum(entries[len(clique)] for clique in cliques if len(clique) > 2)
    if together > limits.all:
        raise too_large_tables(max(map(len, cliques)), together, limits)
    return cliques
