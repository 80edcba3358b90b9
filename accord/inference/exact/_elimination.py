"""Exact inference by elimination, on trees of any size and on loopy graphs of small treewidth.

The cost is states ** (largest clique), not states ** nodes. Nodes with a single possible state (clamped labels) are
removed first, and with them the loops that run through them.
"""

from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from accord.errors import InfeasibleError, InputTypeError, OptionError, TooLargeError
from accord.field import ChainField, PairwiseField
from accord.field._field import sum_dtype
from accord.inference._options import Semiring, check_semiring
from accord.inference._semiring import REDUCE, Reduction
from accord.inference.chains import ChainBeliefs, solve_chains
from accord.inference.exact._beliefs import ExactBeliefs
from accord.inference.exact._junction import Junction, build_junction
from accord.inference.exact._order import find_cliques
from accord.inference.exact._passes import Collected, backtrack, collect, distribute

MAX_TABLE = 2**22  # entries of one clique's table: 32 MiB in float64, so that a few dozen fit in memory
MAX_TABLES = 2**6  # all tables together, as a multiple of the largest allowed
MAX_CLIQUE = 60  # torch tensors have at most 64 axes


@overload
def eliminate_beliefs(field: PairwiseField, semiring: Semiring = "sum", max_table: int = MAX_TABLE) -> ExactBeliefs: ...


@overload
def eliminate_beliefs(field: ChainField, semiring: Semiring = "sum", max_table: int = MAX_TABLE) -> ChainBeliefs: ...


def eliminate_beliefs(
    field: PairwiseField | ChainField, semiring: Semiring = "sum", max_table: int = MAX_TABLE
) -> ExactBeliefs | ChainBeliefs:
    """Exact beliefs by passing messages on a tree of cliques (Lauritzen and Spiegelhalter 1988).

    Differentiable; the gradient of `log_partition` is the marginals. Computed in float64 and returned in the precision
    of the field: at a node with many neighbours, float32 sums drift. Chains are solved by forward and backward passes
    instead, on CPUs in a compiled kernel, whose log-partition also has its gradient from a backward pass.

    Args:
        field: the field to solve. Graphs of a batch and replicas are solved at once, with the conventions of
            `propagate`. A `ChainField` gives `ChainBeliefs`, with one row for each chain.
        semiring: "sum" for marginals and log Z, "max" for max-marginals and the optimum's score. `decode()` gives
            an exact optimum with either.
        max_table: most entries that one table may have: states ** clique size * replicas. All tables of cliques larger
            than an edge together may have 64 times as many.

    Raises:
        InfeasibleError: a graph has no labelling without forbidden states or pairs.
        TooLargeError: the graph is too wide for `max_table`.
    """
    where = "eliminate_beliefs"
    check_semiring(semiring, where)
    if isinstance(field, ChainField):
        return solve_chains(field, semiring, where)
    tree = clique_tree(field, max_table, where, wide=True)
    collected = tree.collect(REDUCE[semiring])
    log_partition = tree.totals(collected, where)
    node, edge = tree.beliefs(collected, REDUCE[semiring])
    with torch.no_grad():
        best = collected if semiring == "max" else tree.collect(REDUCE["max"])
        labels = backtrack(tree.junction, best, lambda given: given.argmax(-1))[0]

    def shape(values: Tensor) -> Tensor:
        return values.reshape(*field.replicas, *values.shape[1:])

    node, edge, log_partition = (shape(values).to(field.node.dtype) for values in (node, edge, log_partition))
    return ExactBeliefs(field, semiring, node, edge, log_partition, shape(labels))


@dataclass(frozen=True, eq=False)
class CliqueTree:
    """A field ready for elimination: edges at fixed nodes are added to the potentials of their other ends."""

    field: PairwiseField
    node: Tensor  # [R, nodes, states]
    edge: Tensor  # [R, kept edges, states, states]
    kept: Tensor  # [kept edges]: columns of the field's edge index
    junction: Junction  # of the kept edges

    def collect(self, reduce: Reduction) -> Collected:
        """Messages to the roots."""
        return collect(self.junction, self.node, self.edge, reduce)

    def totals(self, collected: Collected, where: str) -> Tensor:
        """Log Z or the best score [R, graphs]; raises InfeasibleError if a graph has no labelling."""
        constants = collected.constants
        total = constants.new_zeros(constants.shape[0], self.field.num_graphs)
        total = total.index_add(1, self.field.graph, constants)
        barred = (total == -torch.inf).nonzero()
        if len(barred):
            replica, graph = barred[0].tolist()
            which = f"graph {graph}" + (f" of replica {replica}" if self.field.replicas else "")
            raise InfeasibleError(
                f"{where}: {which} has no labelling without forbidden states or pairs. "
                "Relax a clamped label, a forbidden state or a forbidden pair there."
            )
        return total

    def beliefs(self, collected: Collected, reduce: Reduction) -> tuple[Tensor, Tensor]:
        """Normalised beliefs of all nodes and edges, [R, nodes, states] and [R, edges, states, states]."""
        node, edge = distribute(self.junction, collected, reduce)
        node = node - reduce(node, dim=-1, keepdim=True)
        edge = edge - reduce(edge, dim=(-2, -1), keepdim=True)
        if len(self.kept) < self.field.num_edges:
            # One end of a folded edge is fixed, so its two ends are independent.
            source, target = self.field.edge_index
            apart = node[:, source, :, None] + node[:, target, None, :]
            edge = apart.index_copy(1, self.kept, edge)
        return node, edge


def clique_tree(field: PairwiseField, max_table: int, where: str, wide: bool = False) -> CliqueTree:
    """Fold fixed nodes, find an elimination order for the others, and lay out its cliques.

    Tables have the precision of the field, or float64 if `wide`.
    """
    if not isinstance(field, PairwiseField):
        raise InputTypeError(f"{where}: got a {type(field).__name__}, not a PairwiseField. Build one first.")
    if isinstance(max_table, bool) or not isinstance(max_table, int):
        raise InputTypeError(f"{where}: max_table is a {type(max_table).__name__}, not an int.")
    if max_table < 1:
        raise OptionError(f"{where}: max_table is {max_table}, but a table has at least one entry.")
    node, edge = field.expanded()
    if wide:
        node, edge = (values.to(sum_dtype(values.device)) for values in (node, edge))
    node, kept = _fold_fixed(field.edge_index, node, edge)
    edge_index = field.edge_index[:, kept]
    cliques = _checked_cliques(edge_index, node, max_table, where)
    return CliqueTree(field, node, edge[:, kept], kept, build_junction(edge_index, cliques))


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


def _checked_cliques(edge_index: Tensor, node: Tensor, max_table: int, where: str) -> list[list[int]]:
    """The cliques of an elimination; raises TooLargeError if their tables are too large."""
    replicas, num_nodes, num_states = node.shape
    entries = [max(replicas, 1) * num_states**size for size in range(MAX_CLIQUE + 1)]
    widest = sum(count <= max_table for count in entries) - 1
    cliques = find_cliques(edge_index, num_nodes, widest)
    too_wide = [len(clique) for clique in cliques if len(clique) > widest]
    remedy = (
        "Raise max_table if there is memory, clamp some nodes, solve fewer graphs or replicas at a time, or use "
        "propagate (approximate)."
    )
    if too_wide:
        size = min(too_wide)
        raise TooLargeError(
            f"{where}: elimination meets a clique of {size} nodes, and {num_states}**{size} states x {replicas} "
            f"replicas are more than max_table = {max_table} entries. {remedy}"
        )
    # Tables of pairs are not counted: they are no larger than the field's own.
    together = sum(entries[len(clique)] for clique in cliques if len(clique) > 2)
    if together > MAX_TABLES * max_table:
        raise TooLargeError(
            f"{where}: the widest clique has {max(map(len, cliques))} nodes, and all tables together {together} "
            f"entries, more than {MAX_TABLES} x max_table = {MAX_TABLES * max_table}. {remedy}"
        )
    return cliques
