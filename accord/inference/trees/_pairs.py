"""Pairwise fields as the compiled passes over forests see them."""

from dataclasses import dataclass

from torch import Tensor

from accord.field import PairwiseField
from accord.field.factors import FlatField


@dataclass(frozen=True, eq=False)
class Pairs:
    """Nodes and edges, whether they have loops or not."""

    ends: Tensor  # [2, edges]
    graph: Tensor  # [nodes]
    num_graphs: int
    states: int  # the most of a node
    node: Tensor  # [R, nodes, states], or [R, states of all nodes]
    edge: Tensor  # [R, edges, states, states], or [R or 1, entries of all tables]
    at: Tensor | None = None  # [nodes + 1]: where the states of each node begin; None: all nodes have as many
    table_at: Tensor | None = None  # [edges]: where each table begins; None: all tables are alike
    shares_tables: bool = False  # several edges have one table

    @staticmethod
    def of(field: PairwiseField, node: Tensor, edge: Tensor) -> "Pairs":
        """A pairwise field with potentials that have a single replica axis."""
        structure = field.structure
        return Pairs(structure.edge_index, structure.graph, structure.num_graphs, node.shape[-1], node, edge)

    @staticmethod
    def of_flat(flat: FlatField) -> "Pairs | None":
        """A field all of whose factors are tables of two variables; None for others."""
        known = flat.derived.get("ends", lambda: _ends(flat))
        if known is None:
            return None
        ends, states, shared = known
        unary, tables = flat.unary, flat.tables
        return Pairs(ends, flat.graph, flat.num_graphs, states, unary, tables, flat.at, flat.table_at, shared)

    @property
    def may_be_forest(self) -> bool:
        """False for most graphs with loops: a forest has fewer edges than nodes."""
        return self.ends.shape[1] < len(self.graph)


def _ends(flat: FlatField) -> tuple[Tensor, int, bool] | None:
    """Both ends of each edge, the most states of a node, and whether edges share tables."""
    if flat.rules or flat.num_own < flat.num_nodes or not bool((flat.scope_at.diff() == 2).all()):
        return None
    most = int(flat.states.max()) if len(flat.states) else 1
    shared = len(flat.table_at.unique()) < len(flat.table_at)
    return flat.scope.reshape(-1, 2).t().contiguous(), most, shared
