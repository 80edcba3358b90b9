"""A chain field as solvers see it: all replica axes merged into one, nothing copied that chains share."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field import ChainField
from accord.field._chain_checks import merge_replicas
from accord.field._field import sum_dtype


@dataclass(frozen=True, eq=False)
class ChainProblem:
    """Potentials of R replicas. An axis that all share has length 1 in `edge`, `start` and `end`."""

    node: Tensor  # [R, chains, length, states]
    edge: Tensor  # [R or 1, chains or 1, length - 1 or 1, states, states]; where chains differ, all steps are there
    start: Tensor | None  # [R or 1, chains or 1, states]
    end: Tensor | None
    lengths: Tensor  # [chains]
    present: Tensor | None  # [chains, length]: which positions exist; None if all do

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """All potentials."""
        return self.node, self.edge, self.start, self.end

    @property
    def wants_gradient(self) -> bool:
        """Whether autograd records what is computed from the potentials."""
        return torch.is_grad_enabled() and any(values is not None and values.requires_grad for values in self.tensors)

    @property
    def wide(self) -> tuple[Tensor, Tensor]:
        """Node potentials with those of both ends, and the tables [R, chains, length - 1, states, states], in float64.

        Sums along a chain grow with its length, so in float32 they would drift.
        """
        dtype = sum_dtype(self.node.device)
        node = self.node.to(dtype)
        place = torch.arange(node.shape[2], device=node.device)[:, None]
        if self.start is not None:
            node = torch.where(place == 0, node + self.start.to(dtype)[:, :, None], node)
        if self.end is not None:
            last = place == (self.lengths - 1)[:, None, None]
            node = torch.where(last, node + self.end.to(dtype)[:, :, None], node)
        replicas, chains, length, states = node.shape
        return node, self.edge.to(dtype).expand(replicas, chains, length - 1, states, states)


def as_problem(field: ChainField) -> ChainProblem:
    """Merge the replica axes of a field."""
    replicas, count = field.replicas, field.replicas.numel()
    node, edge = merge_replicas(field.node, 3, replicas), merge_replicas(field.edge, 4, replicas)
    if node.shape[0] < count:
        node = node.expand(count, *node.shape[1:])
    if edge.shape[1] > 1:  # chains differ
        edge = edge.expand(count, field.num_chains, field.length - 1, *edge.shape[-2:])
    start, end = (
        None if values is None else merge_replicas(values, 2, replicas) for values in (field.start, field.end)
    )
    return ChainProblem(node, edge, start, end, field.lengths, field.present if field.is_ragged else None)
