"""Pseudomarginals of triangles, and the potentials that they add to a pairwise field.

With tau_s, tau_st and tau_stu the distributions of nodes, edges and triangles, the potentials are

    theta_s = log tau_s
    theta_st = log tau_st - log tau_s - log tau_t
    theta_stu = log tau_stu - log tau_st - log tau_su - log tau_tu + log tau_s + log tau_t + log tau_u

so that a triangle counts once, an edge in n triangles 1 - n times, and a node 1 - edges + triangles times: the counting
numbers of a region graph (Yedidia, Freeman and Weiss 2005). docs/adr/0023-triangles.md states what follows from it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import FieldError, OptionError
from accord.field._field import PairwiseField
from accord.field._pseudomarginals import _finite, _log_softmax, _per_replica, _scale
from accord.graphs import Triangles
from accord.graphs._checks import check_tensor

CORNERS = 3


@dataclass(frozen=True)
class TrianglePseudomarginals:
    """Log-distributions over the states of the three corners of each triangle."""

    table: Tensor  # [*replicas, triangles, states, states, states]

    def __post_init__(self) -> None:
        table = check_tensor(self.table, "table", "TrianglePseudomarginals")
        if table.dim() < CORNERS + 1 or len(set(table.shape[-CORNERS:])) != 1:
            raise FieldError(
                f"TrianglePseudomarginals: the tables have shape {list(table.shape)}, but [..., triangles, states, "
                "states, states] is needed."
            )

    @classmethod
    def from_logits(cls, logits: Tensor, sharpness: float | Tensor = 1.0) -> "TrianglePseudomarginals":
        """Softmax of scores; `sharpness`, which may hold one value for each replica, multiplies them first."""
        where = "TrianglePseudomarginals.from_logits"
        sharp = _scale(logits, _per_replica(sharpness, logits, CORNERS + 1, "sharpness", where))
        return cls(_log_softmax(sharp.flatten(-CORNERS), "triple of states", "triangle", where).view_as(sharp))

    def shrunk(self, share: float | Tensor) -> "TrianglePseudomarginals":
        """Mixed with a share, from 0 to 1, of the product of each table's own node marginals: independence."""
        where = "TrianglePseudomarginals.shrunk"
        part = _per_replica(share, self.table, CORNERS + 1, "the share", where)
        if bool((part > 1).any()):
            raise OptionError(f"{where}: the share is {part.flatten().tolist()}. Give numbers from 0 to 1.")
        if not bool(part.any()):
            return self
        product = torch.zeros_like(self.table)
        for axis in range(CORNERS):
            product = product + self._sum(axis)
        mixed = torch.lerp(self.table.exp(), product.exp(), part).log()
        return TrianglePseudomarginals(mixed.masked_fill(self.table == -torch.inf, -torch.inf))

    def interaction(self) -> Tensor:
        """theta_stu by each table's own sums; 0 where the corners depend on each other in pairs only.

        The own sums are those of the edge and node networks if all of them are consistent.
        """
        total = self.table
        for axis in range(CORNERS):
            others = tuple(other for other in range(CORNERS) if other != axis)
            total = total - _finite(self._sum(*others)) + _finite(self._sum(axis))
        return total

    def interaction_beside(self, pairs: PairwiseField, triangles: Triangles) -> Tensor:
        """log tau_stu less all potentials that a pairwise field has inside the triangle.

        The same as `interaction` where all networks are consistent and the field is made of their distributions.
        """
        sides = pairs.edge[..., triangles.side, :, :]
        sides = _finite(torch.where(triangles.turned[..., None, None], sides.mT, sides))
        total = self.table
        for side in range(CORNERS):
            total = total - sides[..., side, :, :].unsqueeze(-1 - side)
        first, second, third = _finite(pairs.node)[..., triangles.corner, :].unbind(-2)
        return total - first[..., :, None, None] - second[..., None, :, None] - third[..., None, None, :]

    def _sum(self, *kept: int) -> Tensor:
        """Log-marginal of some corners; the axes of the others have size 1."""
        summed = tuple(axis - CORNERS for axis in range(CORNERS) if axis not in kept)
        return self.table.logsumexp(summed, keepdim=True)
