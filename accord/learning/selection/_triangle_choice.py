"""How triangles count beside nodes and edges: a few numbers for each replica."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from accord.field.triangles import TriangleField, TrianglePseudomarginals
from accord.graphs import Topology, topology_triangles
from accord.inference import Semiring
from accord.inference.triangles import AnyBeliefs, SolvedBeliefs, decode_triangles, solve_triangles
from accord.learning.selection._combination import FieldChoice

SWEEPS = 20  # of max-product; where elimination decodes, they do not matter
PREFIX = "triangle_"


@dataclass(frozen=True, eq=False)
class TriangleChoice:
    """What was chosen on validation data: one value for each replica [*replicas]."""

    pairs: FieldChoice
    triangle_sharpness: Tensor  # multiplies the triangle scores before the softmax
    triangle_weight: Tensor  # of the interactions of triangles; 0 is the pairwise field
    triangle_share: Tensor  # of the pairwise field in the normaliser; the rest are the table's own sums
    triangle_node_weight: Tensor  # multiplies the node potentials of the pairwise field
    triangle_edge_weight: Tensor  # the same for edges
    triangle_shrinkage: Tensor  # of the pseudomarginals, set by how many training triangles are labelled

    @classmethod
    def default(cls, pairs: FieldChoice, shrinkage: Tensor | None = None) -> "TriangleChoice":
        """The pairwise field."""
        one, none = torch.ones_like(pairs.score), torch.zeros_like(pairs.score)
        return cls(pairs, one, none, none, one, one, none if shrinkage is None else shrinkage.to(none))

    @classmethod
    def from_config(cls, config: Mapping[str, Sequence[Any]]) -> "TriangleChoice":
        """Read what `to_config` wrote."""
        own = {name: torch.tensor(values) for name, values in config.items() if name.startswith(PREFIX)}
        pairs = {name: values for name, values in config.items() if not name.startswith(PREFIX)}
        return cls(FieldChoice.from_config(pairs), **own)

    def to_config(self) -> dict[str, list[Any]]:
        """Plain values for each replica, by field."""
        return self.pairs.to_config() | {name: tensor.tolist() for name, tensor in self.own().items()}

    def to(self, device: torch.device) -> "TriangleChoice":
        """The same on another device."""
        return TriangleChoice(self.pairs.to(device), **{name: value.to(device) for name, value in self.own().items()})

    def own(self) -> dict[str, Tensor]:
        """What was chosen for triangles, by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "pairs"}

    @property
    def is_pairwise(self) -> bool:
        """Whether triangles count in no replica."""
        return not bool(self.triangle_weight.any())

    def field(self, node: Tensor, edge: Tensor, triangle: Tensor, topology: Topology) -> TriangleField:
        """The field of logits [R, nodes, states], [R, edges, states, states] and [R, triangles, states^3]."""
        pairs = self.pairs.field(node, edge, topology)
        pairs = pairs.with_potentials(
            _scaled(pairs.node, self.triangle_node_weight, 2), _scaled(pairs.edge, self.triangle_edge_weight, 3)
        )
        marginals = TrianglePseudomarginals.from_logits(triangle, self.triangle_sharpness)
        marginals = marginals.shrunk(self.triangle_shrinkage)
        triangles = topology_triangles(topology)
        tables = marginals.interaction()
        if bool(self.triangle_share.any()):
            beside = marginals.interaction_beside(pairs, triangles)
            gap = (beside - tables).masked_fill(tables == -torch.inf, 0.0)
            tables = tables + _scaled(gap, self.triangle_share, 4)
        return TriangleField(pairs, triangles, _scaled(tables, self.triangle_weight, 4))

    def beliefs(self, field: TriangleField, semiring: Semiring, damping: float) -> AnyBeliefs:
        """Beliefs of such a field; of replicas without triangles those of the pairwise field."""
        if self.is_pairwise:
            return self.pairs.beliefs(field.pairs, semiring, damping)
        without = self.triangle_weight == 0
        if without.dim() != 1 or not bool(without.any()):
            return solve_triangles(field, semiring, damping)
        pairs, rest = self._part(without), self._part(~without)
        parts: tuple[AnyBeliefs, AnyBeliefs] = (
            pairs.beliefs(_replicas(field, without), semiring, damping),
            rest.beliefs(_replicas(field, ~without), semiring, damping),
        )
        names = ("node", "edge", "log_partition", "converged", "sweeps", "residual")
        merged = {name: _merged(without, *(getattr(part, name) for part in parts)) for name in names}
        return SolvedBeliefs(**merged, field=field)

    def labels(self, field: TriangleField, damping: float) -> Tensor:
        """Joint labels [*replicas, nodes]; of replicas without triangles those of the pairwise field."""
        if self.is_pairwise:
            return self.pairs.labels(field.pairs, damping)
        without = self.triangle_weight == 0
        if without.dim() != 1 or not bool(without.any()):
            return decode_triangles(field, damping, SWEEPS)
        pairs = self._part(without).labels(_replicas(field, without), damping)
        return _merged(without, pairs, self._part(~without).labels(_replicas(field, ~without), damping))

    def _part(self, mine: Tensor) -> "TriangleChoice":
        """The choice of some replicas."""
        pairs = FieldChoice(**{name: value[mine] for name, value in self.pairs.tensors().items()})
        return TriangleChoice(pairs, **{name: value[mine] for name, value in self.own().items()})


def _replicas(field: TriangleField, mine: Tensor) -> TriangleField:
    """The field of some replicas."""
    node, edge, triangle = (part[mine] for part in field.expanded())
    return field.with_potentials(node, edge=edge, triangle=triangle)


def _merged(mask: Tensor, inside: Tensor, outside: Tensor) -> Tensor:
    """Values of all replicas from those inside a mask and those outside it."""
    merged = inside.new_empty(len(mask), *inside.shape[1:])
    merged[mask], merged[~mask] = inside, outside.to(inside.dtype)
    return merged


def _scaled(values: Tensor, factor: Tensor, inner: int) -> Tensor:
    """Multiply potentials, with `inner` axes after the replicas, by one number for each replica; -inf stays -inf."""
    shaped = factor.to(values).reshape(*factor.shape, *(1,) * inner)
    barred = values == -torch.inf
    if not bool(barred.any()):
        return values * shaped
    return torch.where(barred, values, values.masked_fill(barred, 0.0) * shaped)
