"""Message passing: one interface, several backends.

A kernel takes a `Problem` and returns its `Solution`: the messages, and for each graph how they were reached. Beliefs,
decoding and partition functions are computed from the messages, in the same way for all backends.
"""

from accord.inference.kernels._choice import KERNELS, check_backend, choose_kernel
from accord.inference.kernels._interface import Kernel, Problem, Solution
from accord.inference.kernels._memory import check_memory, needed_bytes

__all__ = ["KERNELS", "Kernel", "Problem", "Solution", "check_backend", "check_memory", "choose_kernel", "needed_bytes"]
