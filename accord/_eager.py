"""Functions that torch.compile runs as they are, between the graphs that it compiles."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def eager(function: Function) -> Function:
    """Keep a function, and what it calls, out of compiled graphs.

    torch.compile replaces tensors by placeholders and forgets variables that it takes for unused, so code that passes
    addresses to a kernel must not be traced.
    """
    return cast(Function, torch.compiler.disable(function))
