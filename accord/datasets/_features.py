"""Treatments of node features: as they are, rows that sum to one, or columns standardised."""

from collections.abc import Callable

import torch
from torch import Tensor

from accord.errors import OptionError

# Takes x [nodes, features] and training_rows [nodes], True for nodes of training graphs; gives the new x.
Treatment = Callable[[Tensor, Tensor], Tensor]


def raw(x: Tensor, training_rows: Tensor) -> Tensor:
    """Features as the source has them."""
    return x


def row_normalise(x: Tensor, training_rows: Tensor) -> Tensor:
    """Divide each row by its sum of absolute values; rows of zeros stay."""
    total = x.abs().sum(1, keepdim=True)
    return x / total.masked_fill(total == 0, 1)


def standardise(x: Tensor, training_rows: Tensor) -> Tensor:
    """Give each column mean 0 and standard deviation 1 over the training rows, and treat the others alike."""
    seen = x[training_rows].double()  # sums of many small counts lose digits in float32
    deviation = seen.std(0, correction=0)
    # A column that never changes in training cannot be scaled. Comparing values is exact; a variance is not.
    constant = seen.amin(0) == seen.amax(0)
    return (x - seen.mean(0)).div_(deviation.masked_fill(constant, 1)).to(x.dtype)


TREATMENTS: dict[str, Treatment] = {"raw": raw, "row-normalised": row_normalise, "standardised": standardise}


def find_treatment(features: str) -> Treatment:
    """Look a treatment up by name."""
    if features not in TREATMENTS:
        raise OptionError(
            f"load_benchmark: there is no treatment of features called {features!r}. "
            f"Choose one of: {', '.join(TREATMENTS)}."
        )
    return TREATMENTS[features]


def dense_rows(indptr: Tensor, indices: Tensor, values: Tensor | None, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix as a dense float32 tensor; without `values` all its entries are 1."""
    dense = torch.zeros(shape)
    row = torch.repeat_interleave(torch.arange(shape[0]), indptr.diff())
    dense[row, indices] = torch.ones(indices.numel()) if values is None else values.float()
    return dense
