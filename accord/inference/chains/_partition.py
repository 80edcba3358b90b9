"""Log-partitions of chains whose gradient, the marginals, comes from the kernel's backward pass."""

from typing import Any

import torch
from torch import Tensor

from accord.inference._semiring import REDUCE
from accord.inference.chains import _reference
from accord.inference.chains._native import ForwardPass
from accord.inference.chains._problem import ChainProblem


def log_partition(problem: ChainProblem, forward: ForwardPass) -> Tensor:
    """Log Z [R, chains], with gradients to all potentials."""
    result: Tensor = _LogPartition.apply(problem, forward, *problem.tensors)  # type: ignore[no-untyped-call]
    return result


class _LogPartition(torch.autograd.Function):
    """(node, edge, start, end) -> log Z."""

    @staticmethod
    def forward(ctx: Any, problem: ChainProblem, forward: ForwardPass, *tensors: Tensor | None) -> Tensor:
        ctx.lengths, ctx.present, ctx.passed = problem.lengths, problem.present, forward
        ctx.save_for_backward(*tensors)
        return forward.log_partition.clone()

    @staticmethod
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor | None, ...]:
        node, edge, start, end = ctx.saved_tensors  # raises an error if one was changed in place
        wanted = ctx.needs_input_grad[2:]
        if torch.is_grad_enabled():
            problem = ChainProblem(node, edge, start, end, ctx.lengths, ctx.present)
            return None, None, *_differentiable(problem, weight, wanted)
        at_node, at_edge = ctx.passed.gradient(weight, edge.shape if wanted[1] else None)
        at_start = at_node[:, :, 0].sum_to_size(start.shape) if wanted[2] else None
        at_end = _last(at_node, ctx.lengths).sum_to_size(end.shape) if wanted[3] else None
        return None, None, at_node if wanted[0] else None, at_edge, at_start, at_end


def _last(values: Tensor, lengths: Tensor) -> Tensor:
    """Values [R, chains, length, states] of each chain's last position."""
    return values[:, torch.arange(len(lengths), device=lengths.device), lengths - 1]


def _differentiable(problem: ChainProblem, weight: Tensor, wanted: tuple[bool, ...]) -> list[Tensor | None]:
    """The gradient as a function of potentials and weight: second derivatives come from autograd."""
    inputs = [values for values, wants in zip(problem.tensors, wanted, strict=True) if wants and values is not None]
    reduce = REDUCE["sum"]
    found = _reference.log_partition(_reference.messages_behind(problem, reduce), reduce).to(problem.node.dtype)
    gradients = iter(torch.autograd.grad(found, inputs, weight, create_graph=True, materialize_grads=True))
    return [next(gradients) if wants else None for wants in wanted]
