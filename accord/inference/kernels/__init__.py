"""Message passing loops: one interface, several backends.

A kernel takes a `Problem` and returns its `Solution`: the messages, and how they were reached. Everything else
(beliefs, decoding, partition functions) is computed from the messages and is the same for all backends.
"""

from accord.errors import OptionError
from accord.inference.kernels._interface import Kernel, Problem, Solution
from accord.inference.kernels._memory import check_memory, needed_bytes
from accord.inference.kernels.cpu import _solve as _native
from accord.inference.kernels.gradients._propagation import with_gradient
from accord.inference.kernels.reference._residual import solve as solve_residual
from accord.inference.kernels.reference._sequential import solve as solve_sequential
from accord.inference.kernels.reference._synchronous import solve as solve_synchronous
from accord.inference.kernels.triton import _solve as _triton

SCHEDULES: dict[str, Kernel] = {
    "synchronous": solve_synchronous,
    "sequential": solve_sequential,
    "residual": solve_residual,
}


def solve_reference(problem: Problem) -> Solution:
    """Plain torch, in the order that the problem asks for."""
    return SCHEDULES[problem.schedule](problem)


KERNELS: dict[str, Kernel] = {
    "native": _native.solve,
    "reference": solve_reference,
    "triton": _triton.solve,
}

__all__ = ["KERNELS", "SCHEDULES", "Kernel", "Problem", "Solution", "check_memory", "choose_kernel", "needed_bytes"]


def choose_kernel(backend: object, problem: Problem) -> tuple[str, Kernel]:
    """Name and kernel for a backend; "auto" takes the fastest that fits the problem.

    That is the compiled CPU kernel, or on GPUs the Triton kernel, where it can be had, and else the reference. Where a
    gradient is asked for, all but an explicit "reference", which is unrolled by autograd, come `with_gradient`.
    """
    if not isinstance(backend, str) or backend not in {"auto", *KERNELS}:
        raise OptionError(f"propagate: backend {backend!r} is unknown. Choose one of {['auto', *sorted(KERNELS)]}.")
    name = backend
    in_order = problem.schedule != "synchronous"
    if backend == "auto":
        fast, candidate = ("triton", _triton) if problem.node.is_cuda else ("native", _native)
        fits = not in_order and candidate.unfit(problem.detached()) is None and candidate.unavailable() is None
        name = fast if fits else "reference"
    if in_order and name != "reference":
        raise OptionError(
            f"propagate: backend {name!r} cannot be used here: it sends all messages at the same time, and the "
            f"schedule is {problem.schedule!r}. Use backend 'auto' or 'reference', or schedule 'synchronous'."
        )
    kernel = KERNELS[name]
    if problem.wants_gradient and backend != "reference":
        kernel = with_gradient(kernel, unroll=kernel if in_order else None)
    return name, kernel
