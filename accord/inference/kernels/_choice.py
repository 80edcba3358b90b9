"""Which kernel solves a problem."""

from accord.errors import OptionError
from accord.inference.kernels import cpu, reference, triton
from accord.inference.kernels._interface import Kernel, Problem
from accord.inference.kernels.cpu import _ordered as ordered
from accord.inference.kernels.gradients import with_gradient

KERNELS: dict[str, Kernel] = {"native": cpu.solve, "reference": reference.solve, "triton": triton.solve}


def check_backend(backend: object) -> None:
    """Refuse names that no kernel has."""
    if not isinstance(backend, str) or backend not in {"auto", *KERNELS}:
        raise OptionError(f"propagate: backend {backend!r} is unknown. Choose one of {['auto', *sorted(KERNELS)]}.")


def choose_kernel(backend: str, problem: Problem) -> tuple[str, Kernel]:
    """Name and kernel for a backend; "auto" takes the fastest that can solve the problem.

    That is a compiled kernel on CPUs, and on GPUs the Triton kernel, which has synchronous sweeps only. Where it is not
    available or cannot take the problem, it is the reference. If a gradient is needed, the kernel comes
    `with_gradient`, except for an explicit "reference", which autograd unrolls.
    """
    name = backend
    in_order = problem.schedule != "synchronous"
    if backend == "auto":
        name = _fastest(problem, in_order)
    if in_order and name == "triton":
        raise OptionError(
            f"propagate: backend {name!r} cannot be used here: it sends all messages at the same time, and the "
            f"schedule is {problem.schedule!r}. Use backend 'auto' or 'reference', or schedule 'synchronous'."
        )
    kernel = KERNELS[name]
    if in_order and name == "native":
        kernel = ordered.solve_for_gradient if problem.wants_gradient else ordered.solve
    if problem.wants_gradient and backend != "reference":
        kernel = with_gradient(kernel, unroll=reference.solve if in_order else None)
    return name, kernel


def _fastest(problem: Problem, in_order: bool) -> str:
    if in_order:
        fits = ordered.unfit(problem.detached()) is None and ordered.unavailable() is None
        return "native" if fits and not ordered.is_slow(problem) else "reference"
    name, candidate = ("triton", triton) if problem.node.is_cuda else ("native", cpu)
    return name if candidate.unfit(problem) is None and candidate.unavailable() is None else "reference"
