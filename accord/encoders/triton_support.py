"""Triton, where it is installed: kernels are written once and compiled for the GPU at their first call."""

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

triton: Any
tl: Any
try:
    triton, tl = import_module("triton"), import_module("triton.language")
except ImportError:
    triton, tl = None, SimpleNamespace(constexpr=int)  # what the signatures of kernels name

DTYPES = (torch.float32, torch.bfloat16, torch.float16)  # kernels add up in float32, too coarse for float64


def jit(kernel: Callable[..., Any]) -> Any:
    """Compile with Triton; without it, leave alone what nobody will call."""
    return kernel if triton is None else triton.jit(kernel)


def suits(*tensors: Tensor) -> bool:
    """Whether kernels can take these: on a GPU, in a precision they work in, with Triton at hand."""
    return triton is not None and all(tensor.is_cuda and tensor.dtype in DTYPES for tensor in tensors)


def power_of_two(number: int) -> int:
    """The smallest one that is not less: blocks of Triton have such sizes."""
    return 1 << max(number - 1, 0).bit_length()
