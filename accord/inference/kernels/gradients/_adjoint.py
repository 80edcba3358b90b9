"""Gradients at a fixed point, by the implicit function theorem.

Settled messages m solve m = f(m, field), f being one undamped synchronous sweep, whatever damping or schedule led
there. A gradient v with respect to m therefore becomes (df/dfield)' u, where u = v + (df/dm)' u. That equation is
solved by sweeping backwards; at the damping of the forward run, it contracts as fast as the forward run did in the end.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from accord.inference._options import DEFAULT_SWEEPS, DEFAULT_TOLERANCE
from accord.inference.kernels._interface import Problem
from accord.inference.kernels.reference import arc_potentials, change, send

MORE_SWEEPS = 2  # backward sweeps allowed for each forward sweep: the start of a backward run is as far off


def implicit_gradient(
    problem: Problem, inputs: Sequence[Tensor], fixed: Tensor, gradient: Tensor, sweeps: int
) -> tuple[list[Tensor], Tensor]:
    """Gradients with respect to `inputs`, which are parts of the problem, of messages that have settled.

    Memory: one differentiable sweep, about 3 [R, arcs, states, states] tensors, however many sweeps were run.

    Args:
        problem: what was solved.
        inputs: leaves of autograd among the problem's tensors.
        fixed: the settled messages [R, arcs, states].
        gradient: with respect to them; 0 where it is not to be followed.
        sweeps: how many sweeps the forward run took.

    Returns:
        One gradient for each input, and where they are right [R, graphs]: elsewhere the backward sweeps did not settle,
        and nothing was added.
    """
    with torch.enable_grad():
        fixed = fixed.detach().requires_grad_()
        said = send(problem, arc_potentials(problem), fixed)
    adjoint, solved = _sweep_back(problem, said, fixed, gradient, max(DEFAULT_SWEEPS, MORE_SWEEPS * sweeps))
    # Not a product: what did not settle may be infinite.
    adjoint = adjoint.where(solved[:, problem.arc_graph, None], 0.0)
    parts = torch.autograd.grad(said, inputs, adjoint, allow_unused=True, materialize_grads=True)
    return list(parts), solved


def _sweep_back(
    problem: Problem, said: Tensor, fixed: Tensor, gradient: Tensor, max_sweeps: int
) -> tuple[Tensor, Tensor]:
    """u = gradient + (d said / d fixed)' u, and for each replica and graph whether it was found."""
    tolerance = DEFAULT_TOLERANCE[gradient.dtype]  # relative: gradients have no scale of their own
    adjoint = gradient
    solved = _largest(problem, gradient) == 0
    for _ in range(max_sweeps):
        if bool(solved.all()):
            break
        (back,) = torch.autograd.grad(said, fixed, adjoint, retain_graph=True)
        new = problem.damping * adjoint + (1 - problem.damping) * (gradient + back)
        # Settled graphs are frozen, as in the forward run: a batch gives what its graphs give one by one.
        new = adjoint.where(solved[:, problem.arc_graph, None], new)
        size = _largest(problem, new)
        solved = solved | ((change(problem, adjoint, new) <= tolerance * size) & size.isfinite())
        adjoint = new
    return adjoint, solved


def _largest(problem: Problem, values: Tensor) -> Tensor:
    """Largest absolute value for each replica and graph [R, graphs]."""
    return change(problem, torch.zeros_like(values), values)
