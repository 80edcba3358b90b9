"""Gradients at a fixed point, by the implicit function theorem.

Converged messages m solve m = f(m, field), where f is one undamped synchronous sweep, whatever damping or schedule was
used. A gradient v with respect to m therefore becomes (df/dfield)' u, where u = v + (df/dm)' u. That equation is
solved by backward sweeps with the damping of the forward run; they contract as fast as the forward run did near its
end.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE
from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import arc_potentials, change, send

MORE_SWEEPS = 2  # backward sweeps allowed for each forward sweep


def implicit_gradient(
    problem: Problem, inputs: Sequence[Tensor], fixed: Tensor, gradient: Tensor, sweeps: int
) -> tuple[list[Tensor], Tensor]:
    """Gradients of converged messages with respect to `inputs`, which are tensors of the problem.

    Takes the memory of one differentiable sweep, about 3 [R, arcs, states, states] tensors, for any number of sweeps.

    Args:
        problem: the problem that was solved.
        inputs: autograd leaves among the problem's tensors.
        fixed: the converged messages [R, arcs, states].
        gradient: the gradient with respect to them; 0 where it should be ignored.
        sweeps: how many sweeps the forward run took.

    Returns:
        One gradient for each input, and for which replicas and graphs they are complete [R, graphs]. For the others the
        backward sweeps did not converge, and nothing was added.
    """
    with torch.enable_grad():
        fixed = fixed.detach().requires_grad_()
        sent = send(problem, arc_potentials(problem), fixed)
    adjoint, solved = _sweep_back(problem, sent, fixed, gradient, max(DEFAULT_SWEEPS, MORE_SWEEPS * sweeps))
    # Not a product with the mask: values that did not converge may be infinite.
    adjoint = adjoint.where(solved[:, problem.arc_graph, None], 0.0)
    parts = torch.autograd.grad(sent, inputs, adjoint, allow_unused=True, materialize_grads=True)
    return list(parts), solved


def _sweep_back(
    problem: Problem, sent: Tensor, fixed: Tensor, gradient: Tensor, max_sweeps: int
) -> tuple[Tensor, Tensor]:
    """Solve u = gradient + (d sent / d fixed)' u; also, for which replicas and graphs that succeeded."""
    tolerance = DEFAULT_TOLERANCE[gradient.dtype]  # relative, since gradients can have any scale
    adjoint = gradient
    solved = _largest(problem, gradient) == 0
    for _ in range(max_sweeps):
        if bool(solved.all()):
            break
        (back,) = torch.autograd.grad(sent, fixed, adjoint, retain_graph=True)
        new = problem.damping * adjoint + (1 - problem.damping) * (gradient + back)
        # Graphs that have converged are frozen, as in the forward run, so a batch equals its parts.
        new = adjoint.where(solved[:, problem.arc_graph, None], new)
        size = _largest(problem, new)
        solved = solved | ((change(problem, adjoint, new) <= tolerance * size) & size.isfinite())
        adjoint = new
    return adjoint, solved


def _largest(problem: Problem, values: Tensor) -> Tensor:
    """Largest absolute value for each replica and graph [R, graphs]."""
    return change(problem, torch.zeros_like(values), values)
