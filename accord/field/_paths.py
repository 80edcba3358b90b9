"""A pairwise field on paths as chains, which are solved in one pass each way."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field._chains import ChainField
from accord.field._field import PairwiseField
from accord.graphs.sequences import SequenceLayout


@dataclass(frozen=True, eq=False)
class PathChains:
    """The chains of a field, and where its nodes and edges are in them."""

    field: ChainField
    layout: SequenceLayout

    def at_nodes(self, values: Tensor) -> Tensor:
        """Values [*replicas, chains, length, ...] -> [*replicas, nodes, ...]."""
        axis = len(self.field.replicas)
        return values.flatten(axis, axis + 1).index_select(axis, self.layout.padded)

    def from_nodes(self, values: Tensor, blank: float = 0.0) -> Tensor:
        """Values [*leading, nodes] -> [*leading, chains, length], `blank` beyond the end of a chain."""
        return _padded(values, self.layout.padded, self.field.num_chains, self.field.length, values.dim() - 1, blank)


def chains_of(field: PairwiseField) -> PathChains | None:
    """The chains of a field; None unless all its graphs are paths in node order, and none is empty.

    Gradients go through. A table that all edges share (an expanded view) stays shared.
    """
    layout = field.structure.paths
    if layout is None or len(layout.lengths) != field.num_graphs or not field.num_graphs:
        return None
    count, length = len(layout.lengths), layout.longest
    axis = len(field.replicas)
    node = field.node.expand(*field.replicas, *field.node.shape[-2:])
    node = _padded(node, layout.padded, count, length, axis)
    return PathChains(ChainField(node, _tables(field, layout, count, length), layout.lengths), layout)


def _tables(field: PairwiseField, layout: SequenceLayout, count: int, length: int) -> Tensor:
    """Tables of all steps, from each position to the next."""
    edge, (source, target) = field.edge, field.edge_index
    forward = bool((source < target).all())
    if field.num_edges == 0:
        return edge.new_zeros(field.num_states, field.num_states)
    if edge.stride(-3) == 0 and forward:  # one table for all edges
        return edge[..., :1, :, :].unsqueeze(-4)
    if not forward:
        edge = torch.where((source < target)[:, None, None], edge, edge.transpose(-1, -2))
    first = torch.minimum(source, target)
    place = layout.sequence[first] * (length - 1) + layout.position[first]
    return _padded(edge, place, count, length - 1, edge.dim() - 3)


def _padded(values: Tensor, place: Tensor, count: int, length: int, axis: int, blank: float = 0.0) -> Tensor:
    """Rows along an axis at their places among count x length, and `blank` elsewhere."""
    shape = (*values.shape[:axis], count * length, *values.shape[axis + 1 :])
    rows = values.new_full(shape, blank).index_copy(axis, place, values)
    return rows.view(*shape[:axis], count, length, *shape[axis + 1 :])
