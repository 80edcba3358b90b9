"""Sum-product and max-product differ in one operation: how the states of a neighbour are reduced."""

from typing import Protocol

import torch
from torch import Tensor


class Reduction(Protocol):
    """Reduce log-values over some axes."""

    def __call__(self, values: Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
        """Reduce `values` over `dim`."""
        ...


def log_sum(values: Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """`torch.logsumexp`, but with gradient 0 instead of NaN where all values are -inf."""
    barred = values.detach().amax(dim, keepdim=True) == -torch.inf
    total = values.masked_fill(barred, 0.0).logsumexp(dim, keepdim=True).masked_fill(barred, -torch.inf)
    return total if keepdim else total.squeeze(dim)


def log_max(values: Tensor, dim: int | tuple[int, ...], keepdim: bool = False) -> Tensor:
    """The best value."""
    return values.amax(dim, keepdim=keepdim)


REDUCE: dict[str, Reduction] = {"sum": log_sum, "max": log_max}
