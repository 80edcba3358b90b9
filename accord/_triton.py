"""Triton if it is installed; otherwise just enough that modules of device code can be imported.

This is the only module that imports Triton. When Triton is first imported it decides whether kernels are compiled or
interpreted ($TRITON_INTERPRET), so importing this module fixes that choice.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)  # kernels add in float32, too coarse for float64


class _Absent:
    """Stands for any part of Triton where it is absent. Device code is then imported but never run."""

    def __getattr__(self, name: str) -> "_Absent":
        return self

    def __call__(self, *_: object, **__: object) -> "_Absent":
        return self


triton: Any
tl: Any
jit: Callable[..., Any]
try:
    triton, tl = import_module("triton"), import_module("triton.language")
    jit = triton.jit
except ImportError:
    triton, tl, jit = None, _Absent(), _Absent()


def suits(*tensors: Tensor) -> bool:
    """Whether Triton kernels can take these tensors: on a GPU, in a supported precision, with Triton installed."""
    return triton is not None and all(tensor.is_cuda and tensor.dtype in DTYPES for tensor in tensors)


def power_of_two(number: int) -> int:
    """The smallest power of two that is at least `number`. Triton's blocks have such sizes."""
    return 1 << max(number - 1, 0).bit_length()
