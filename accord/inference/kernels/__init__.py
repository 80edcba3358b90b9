"""Message passing loops: one interface, several backends.

A kernel takes a `Problem` and returns its `Solution`: the messages, and how they were reached. Everything else
(beliefs, decoding, partition functions) is computed from the messages and is the same for all backends.
"""

from accord.errors import OptionError
from accord.inference.kernels import _native
from accord.inference.kernels._gradients import with_gradient
from accord.inference.kernels._interface import Kernel, Problem, Solution
from accord.inference.kernels._reference import solve as solve_reference

KERNELS: dict[str, Kernel] = {"native": _native.solve, "reference": solve_reference}

__all__ = ["KERNELS", "Kernel", "Problem", "Solution", "choose_kernel"]


def choose_kernel(backend: object, problem: Problem) -> tuple[str, Kernel]:
    """Name and kernel for a backend; "auto" takes the fastest that fits the problem.

    That is the compiled CPU kernel where it can be had, and else the reference. Where a gradient is asked for, all but
    an explicit "reference", which is unrolled by autograd, come `with_gradient`.
    """
    if not isinstance(backend, str) or backend not in {"auto", *KERNELS}:
        raise OptionError(f"propagate: backend {backend!r} is unknown. Choose one of {['auto', *sorted(KERNELS)]}.")
    name = backend
    if backend == "auto":
        fits = _native.unfit(problem.detached()) is None and _native.unavailable() is None
        name = "native" if fits else "reference"
    kernel = KERNELS[name]
    if problem.wants_gradient and backend != "reference":
        kernel = with_gradient(kernel)
    return name, kernel
