"""Gradients through messages between factors and variables, whichever kernel passed them.

Where a graph converged, the gradient of the fixed point: messages m solve m = f(m, field), so a gradient v with respect
to m becomes (df/dfield)' u, where u = v + (df/dm)' u is found by backward sweeps. Elsewhere the run is repeated in
autograd. The same as `kernels/gradients`, for messages of different lengths.
"""

from typing import Any

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE
from accord.inference.factors import _reference
from accord.inference.factors._interface import FactorKernel, FactorProblem, FactorSolution
from accord.inference.factors._layout import Layout


def with_gradient(kernel: FactorKernel) -> FactorKernel:
    """The kernel with gradients to potentials, appearance and start. Second derivatives are refused."""

    def solve(problem: FactorProblem) -> FactorSolution:
        outputs = _Propagation.apply(kernel, problem, *problem.inputs)  # type: ignore[no-untyped-call]
        return FactorSolution(*outputs)

    return solve


class _Propagation(torch.autograd.Function):
    """(potentials, appearance, start) -> (messages, residual, sweeps)."""

    @staticmethod
    def forward(
        ctx: Any, kernel: FactorKernel, problem: FactorProblem, *inputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        problem = problem.with_inputs([value.detach() for value in inputs])
        solution = kernel(problem)
        ctx.problem = problem
        ctx.save_for_backward(*inputs, solution.messages, solution.residual, solution.sweeps)
        ctx.mark_non_differentiable(solution.residual, solution.sweeps)
        return solution.messages, solution.residual, solution.sweeps

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise OptionError(
                "propagate: fields with factors have first derivatives only, but create_graph=True asks for more. "
                "Use backend 'reference', or leave create_graph out."
            )
        *inputs, messages, residual, sweeps = ctx.saved_tensors
        leaves = [value.detach().requires_grad_() for value in inputs]
        problem = ctx.problem.with_inputs(leaves)
        layout = Layout.of(problem.flat)
        solved = (residual <= problem.tolerance) & (problem.tolerance > 0)
        sums = [torch.zeros_like(value) for value in leaves]
        if bool(solved.any()):
            there = gradient.where(solved[:, layout.graph_of], 0.0)
            parts, complete = _at_fixed_point(problem, layout, leaves, messages, there, int(sweeps.max()))
            sums, solved = _add(sums, parts), solved & complete
        if not bool(solved.all()):
            if problem.schedule != "synchronous":
                raise OptionError(
                    f"propagate: this run of schedule {problem.schedule!r} did not converge, so its gradient is not "
                    "available. Give more sweeps or damping, or use schedule='synchronous'."
                )
            there = gradient.where(~solved[:, layout.graph_of], 0.0)
            with torch.enable_grad():
                again = _repeated(problem, layout, sweeps)
            parts = torch.autograd.grad(again, leaves, there, allow_unused=True, materialize_grads=True)
            sums = _add(sums, parts)
        return (None, None, *sums)


def _at_fixed_point(
    problem: FactorProblem, layout: Layout, leaves: list[Tensor], fixed: Tensor, gradient: Tensor, sweeps: int
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Gradients of converged messages, and for which replicas and graphs they are complete [R, graphs]."""
    with torch.enable_grad():
        fixed = fixed.detach().requires_grad_()
        sent = _reference.send(problem, layout, fixed)
    tolerance = DEFAULT_TOLERANCE[gradient.dtype]
    adjoint = gradient

    def largest(values: Tensor) -> Tensor:
        return _reference.change(problem, layout, torch.zeros_like(values), values)

    solved = largest(gradient) == 0
    for _ in range(max(DEFAULT_SWEEPS, 2 * sweeps)):
        if bool(solved.all()):
            break
        (back,) = torch.autograd.grad(sent, fixed, adjoint, retain_graph=True)
        new = problem.damping * adjoint + (1 - problem.damping) * (gradient + back)
        new = adjoint.where(solved[:, layout.graph_of], new)
        size = largest(new)
        moved = _reference.change(problem, layout, adjoint, new)
        solved = solved | ((moved <= tolerance * size) & size.isfinite())
        adjoint = new
    adjoint = adjoint.where(solved[:, layout.graph_of], 0.0)
    return torch.autograd.grad(sent, leaves, adjoint, allow_unused=True, materialize_grads=True), solved


def _repeated(problem: FactorProblem, layout: Layout, sweeps: Tensor) -> Tensor:
    """The messages again, recorded by autograd; each graph stops after its number of sweeps."""
    messages = _reference.first_messages(problem, layout)
    for sweep in range(int(sweeps.max()) if sweeps.numel() else 0):
        new = _reference.damp(problem, layout, messages, _reference.send(problem, layout, messages))
        messages = torch.where((sweeps > sweep)[:, layout.graph_of], new, messages)
    return messages


def _add(sums: list[Tensor], parts: tuple[Tensor, ...]) -> list[Tensor]:
    return [so_far + part for so_far, part in zip(sums, parts, strict=True)]
