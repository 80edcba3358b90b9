"""The log-partition of forests, with its gradient: the marginals."""

from typing import Any

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, OptionError
from accord.field import PairwiseField
from accord.inference.trees import _native


@eager
def log_partition(field: PairwiseField, node: Tensor, edge: Tensor) -> Tensor | None:
    """Log Z [R, graphs], float64, of a forest; None if there are loops or the kernel does not fit.

    Args:
        field: the graphs.
        node: [R, nodes, states].
        edge: [R, edges, states, states].
    """
    if not _native.fits(field):
        return None
    totals = torch.empty(node.shape[0], field.num_graphs, dtype=torch.float64)
    if not _native.run(field, node, edge, totals):
        return None
    if torch.is_grad_enabled() and (node.requires_grad or edge.requires_grad):
        return _Partition.apply(node, edge, field, totals)  # type: ignore[no-untyped-call,no-any-return]
    return totals


class _Partition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: Tensor, edge: Tensor, field: PairwiseField, totals: Tensor) -> Tensor:
        ctx.field = field
        ctx.save_for_backward(node, edge)
        return totals.clone()

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        # torch's `once_differentiable` would let torch.autograd.grad return part of the second derivative.
        if torch.is_grad_enabled():
            raise OptionError(
                "propagate: this backend has first derivatives only, but create_graph=True asks for more. "
                "Use backend 'reference', or leave create_graph out."
            )
        node, edge = ctx.saved_tensors
        gradients = [torch.empty(values.shape, dtype=values.dtype) for values in (node, edge)]
        solved = _native.run(
            ctx.field,
            node,
            edge,
            torch.empty_like(weight, memory_format=torch.contiguous_format),
            weight=weight.contiguous(),
            node_gradient=gradients[0],
            edge_gradient=gradients[1],
        )
        if not solved:
            raise FieldError(
                "propagate: edge_index or graph was changed before the gradient was computed. Compute it first."
            )
        return (*gradients, None, None)
