"""Gradients through message passing, whichever kernel passed the messages.

For each replica and graph: if the run converged, the gradient of the fixed point (`_adjoint`); if it did not, or if the
backward sweeps do not, the gradient of the sweeps that were run (`_unrolling`). Of the forward run only the messages
are kept. Memory and time are in docs/adr/0006-gradients-and-schedules.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.inference.kernels._interface import Kernel, Problem, Solution
from accord.inference.kernels.gradients._adjoint import implicit_gradient
from accord.inference.kernels.gradients._unrolling import unrolled_gradient

LEAVES = ("node", "edge", "appearance", "start")  # the tensors of a problem that may need a gradient


def with_gradient(kernel: Kernel, unroll: Kernel | None = None) -> Kernel:
    """The kernel with gradients to node, edge, appearance and start. Second derivatives are refused.

    Args:
        kernel: passes the messages; need not be differentiable.
        unroll: a differentiable kernel that repeats the run where it did not converge; None if `kernel` sweeps
            synchronously, which is unrolled in segments.
    """

    def solve(problem: Problem) -> Solution:
        leaves = (getattr(problem, name) for name in LEAVES)
        outputs = _Propagation.apply(kernel, unroll, problem.detached(), *leaves)  # type: ignore[no-untyped-call]
        return Solution(*outputs)

    return solve


class _Propagation(torch.autograd.Function):
    """(node, edge, appearance, start) -> (messages, residual, sweeps)."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, unroll: Kernel | None, problem: Problem, *leaves: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        solution = kernel(problem)
        # The problem's tensors are detached views of the same memory, so that no reference cycle is made.
        ctx.problem, ctx.unroll = problem, unroll
        ctx.save_for_backward(*leaves, solution.messages, solution.residual, solution.sweeps)
        ctx.mark_non_differentiable(solution.residual, solution.sweeps)
        return solution.messages, solution.residual, solution.sweeps

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        # torch's `once_differentiable` would let torch.autograd.grad return part of the second derivative.
        if torch.is_grad_enabled():
            raise OptionError(
                "propagate: this backend has first derivatives only, but create_graph=True asks for more. "
                "Use backend 'reference', or leave create_graph out."
            )
        *leaves, messages, residual, sweeps = ctx.saved_tensors
        wanted = dict(zip(LEAVES, ctx.needs_input_grad[-len(LEAVES) :], strict=True))
        problem = replace(ctx.problem, **dict(zip(LEAVES, leaves, strict=True))).detached()
        names = [name for name in LEAVES if wanted[name]]
        sums = {name: torch.zeros_like(getattr(problem, name)) for name in names}
        _add_gradients(sums, problem, Solution(messages.detach(), residual, sweeps), gradient, ctx.unroll)
        return (None, None, None, *(sums.get(name) for name in LEAVES))


def _add_gradients(
    sums: dict[str, Tensor], problem: Problem, solution: Solution, gradient: Tensor, unroll: Kernel | None
) -> None:
    # With tolerance 0 the caller wants a number of sweeps, not a fixed point.
    solved = (solution.residual <= problem.tolerance) & (problem.tolerance > 0)
    if bool(solved.any()):
        part = _Part.of(problem, solved, list(sums))
        most = int(solution.sweeps.where(solved, 0).max())
        fixed, there = solution.messages[:, part.arcs], part.select(gradient)
        gradients, complete = implicit_gradient(part.problem, part.inputs, fixed, there, most)
        part.add(sums, gradients)
        solved = solved & complete
    rest = ~solved
    if bool(rest.any()):
        part = _Part.of(problem, rest, list(sums))
        there = part.select(gradient)
        if unroll is None:
            gradients = unrolled_gradient(part.problem, part.inputs, solution.sweeps.where(rest, 0), there)
        else:
            with torch.enable_grad():
                messages = unroll(part.problem).messages
            gradients = list(
                torch.autograd.grad(messages, part.inputs, there, allow_unused=True, materialize_grads=True)
            )
        part.add(sums, gradients)


@dataclass(frozen=True, eq=False)
class _Part:
    """Some replicas and graphs of a problem, with their own autograd leaves."""

    problem: Problem
    names: Sequence[str]  # of the leaves
    where: Tensor  # [R, graphs]: which replicas of the graphs are included
    edges: Tensor
    arcs: Tensor

    @classmethod
    def of(cls, problem: Problem, where: Tensor, names: Sequence[str]) -> "_Part":
        part, edges, arcs = problem.restricted(where.any(0))
        leaves = {name: getattr(part, name).detach().requires_grad_() for name in names}
        return cls(replace(part, **leaves), names, where, edges, arcs)

    @property
    def inputs(self) -> list[Tensor]:
        return [getattr(self.problem, name) for name in self.names]

    def select(self, gradient: Tensor) -> Tensor:
        """The gradient of this part's arcs, 0 in replicas that are not included."""
        return gradient[:, self.arcs].where(self.where[:, self.problem.arc_graph, None], 0.0)

    def add(self, sums: dict[str, Tensor], gradients: Sequence[Tensor]) -> None:
        """Add gradients of the part's leaves to those of the whole problem."""
        for name, gradient in zip(self.names, gradients, strict=True):
            if name == "node":
                sums[name] += gradient
            else:
                sums[name].index_add_(1, self.arcs if name == "start" else self.edges, gradient)
