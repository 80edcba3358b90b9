"""Fields of order 3: a pairwise field, and a table for each triangle of its graph."""

from collections.abc import Sequence

from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError
from accord.field._field import PairwiseField
from accord.field.factors import FactorField, TableFactors
from accord.graphs import Triangles, find_sides


class TriangleField(FactorField):
    """Log-potentials of the nodes, edges and triangles of one graph, or of a batch of graphs.

    log p(y) = sum_s node[s, y_s] + sum_(s,t) edge[(s,t), y_s, y_t]
               + sum_(s,t,u) triangle[(s,t,u), y_s, y_t, y_u] - log Z

    A field with factors, so that every solver of these solves it; it has the attributes of a `PairwiseField` too.

    Args:
        pairs: node and edge potentials.
        triangles: [triangles, 3], nodes of which every two are linked, or `Triangles` that were found before.
        tables: [*replicas, triangles, states, states, states]; axis i belongs to corner i.
    """

    edge_index: Tensor  # [2, edges]: each undirected edge once
    triangles: Triangles

    @eager
    def __init__(self, pairs: PairwiseField, triangles: Tensor | Triangles, tables: Tensor) -> None:
        where = "TriangleField"
        corner = triangles.corner if isinstance(triangles, Triangles) else triangles
        if tables.dim() < 4 or corner.dim() != 2 or tables.shape[-4:] != (len(corner), *(pairs.num_states,) * 3):
            raise FieldError(
                f"{where}: there are triangles {list(corner.shape)} and tables {list(tables.shape)} of a field with "
                f"{pairs.num_states} states, but [triangles, 3] and [..., triangles, states, states, states] are "
                "needed. Give one table for each triangle."
            )
        groups = [TableFactors(pairs.edge_index.t(), pairs.edge), TableFactors(corner, tables)]
        super().__init__(pairs.node, groups, pairs.graph, pairs.states, pairs.num_graphs)
        self.edge_index = pairs.edge_index
        if not isinstance(triangles, Triangles):
            triangles = find_sides(triangles, pairs.edge_index, pairs.num_nodes)
        self.triangles = triangles

    @property
    def num_edges(self) -> int:
        """How many undirected edges, in all graphs together."""
        return int(self.edge_index.shape[1])

    @property
    def num_triangles(self) -> int:
        """How many triangles, in all graphs together."""
        return len(self.triangles)

    @property
    def edge(self) -> Tensor:
        """Tables of the edges [*replicas, edges, states, states]."""
        return self.groups[0].values

    @property
    def triangle(self) -> Tensor:
        """Tables of the triangles [*replicas, triangles, states, states, states]."""
        return self.groups[1].values

    @property
    def pairs(self) -> PairwiseField:
        """Nodes and edges alone."""
        return PairwiseField(self.edge_index, self.node, self.edge, self.graph, self.num_graphs, self.states)

    def with_potentials(
        self,
        node: Tensor | None = None,
        values: Sequence[Tensor | None] = (),
        *,
        edge: Tensor | None = None,
        triangle: Tensor | None = None,
    ) -> "TriangleField":
        """The same graphs with other potentials."""
        given = tuple(values) or (edge, triangle)
        changed = super().with_potentials(node, given)
        assert isinstance(changed, TriangleField)
        return changed

    def expanded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Potentials of nodes, edges and triangles [R, ...], with all replica axes merged into one."""
        count = self.replicas.numel()
        parts = (self.node, 2), (self.edge, 3), (self.triangle, 4)
        merged = (
            part.expand(*self.replicas, *part.shape[part.dim() - inner :]).reshape(
                count, *part.shape[part.dim() - inner :]
            )
            for part, inner in parts
        )
        node, edge, triangle = merged
        return node, edge, triangle

    def _taken(self, field: FactorField) -> "TriangleField":
        other = object.__new__(TriangleField)
        other.__dict__.update(field.__dict__)
        device, own = field.node.device, self.triangles
        if device == self.edge_index.device:
            other.edge_index, other.triangles = self.edge_index, own
        else:
            other.edge_index = self.edge_index.to(device)
            other.triangles = Triangles(*(part.to(device) for part in (own.corner, own.side, own.turned)))
        return other
