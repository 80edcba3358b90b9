"""Functions that torch.compile runs as they are, between the graphs that it compiles."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def eager(function: Function) -> Function:
    """Keep a function, and what it calls, out of compiled graphs.

    torch.compile replaces tensors by placeholders and forgets variables that it takes for unused, so code that passes
    addresses to a kernel must not be traced.
    """

    apart: list[Callable[..., Any]] = []

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if "torch._dynamo" not in sys.modules:  # nothing is compiled yet, and loading the compiler takes a second
            return function(*arguments, **named)
        if not apart:
            apart.append(torch.compiler.disable(function))
        return apart[0](*arguments, **named)

    return cast(Function, call)
