"""Message passing loops: one interface, several backends.

A kernel takes a `Problem` and returns its `Solution`: the messages, and how they were reached. Everything else
(beliefs, decoding, partition functions) is computed from the messages and is the same for all backends.
"""

from accord.errors import OptionError
from accord.inference.kernels._interface import Kernel, Problem, Solution
from accord.inference.kernels._reference import solve as solve_reference

KERNELS: dict[str, Kernel] = {"reference": solve_reference}

__all__ = ["KERNELS", "Kernel", "Problem", "Solution", "choose_kernel"]


def choose_kernel(backend: object) -> tuple[str, Kernel]:
    """Name and kernel for a backend; "auto" takes the fastest that fits."""
    if not isinstance(backend, str) or backend not in {"auto", *KERNELS}:
        raise OptionError(f"propagate: backend {backend!r} is unknown. Choose one of {['auto', *sorted(KERNELS)]}.")
    name = "reference" if backend == "auto" else backend
    return name, KERNELS[name]
