"""The log-partition of forests, with its gradient: the marginals."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, OptionError
from accord.inference.trees import _native
from accord.inference.trees._pairs import Pairs


@eager
def log_partition(pairs: Pairs) -> Tensor | None:
    """Log Z [R, graphs], float64, of a forest; None if there are loops or the kernel does not fit.

    Gradients reach the potentials, unless edges share tables, whose sums of many terms would need more precision.
    """
    node, edge = pairs.node, pairs.edge
    wanted = torch.is_grad_enabled() and (node.requires_grad or edge.requires_grad)
    if not _native.fits(pairs) or (wanted and pairs.shares_tables):
        return None
    totals = torch.empty(len(node), pairs.num_graphs, dtype=torch.float64)
    if not _native.run(pairs, totals):
        return None
    if wanted:
        plain = replace(pairs, node=node.detach(), edge=edge.detach())
        totals = _Partition.apply(node, edge, plain, totals)  # type: ignore[no-untyped-call]
    return totals


class _Partition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: Tensor, edge: Tensor, pairs: Pairs, totals: Tensor) -> Tensor:
        ctx.pairs = pairs
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
        gradients = torch.empty(node.shape, dtype=node.dtype), torch.zeros(edge.shape, dtype=edge.dtype)
        solved = _native.run(
            replace(ctx.pairs, node=node, edge=edge),
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
