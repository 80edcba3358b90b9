"""Sums of log-values that may be -inf, with one term taken out again.

`total - term` is NaN when both are -inf. So a sum is kept as its finite part and a count of the infinities in it:
taking a term out subtracts from both, and only a count above zero makes the result -inf.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Extended:
    """A log-value as finite part and number of -inf terms; both tensors have the same shape."""

    finite: Tensor
    infinities: Tensor

    @classmethod
    def split(cls, values: Tensor) -> "Extended":
        """Take a tensor apart."""
        barred = values == -torch.inf
        return cls(values.masked_fill(barred, 0.0), barred.to(values.dtype))

    def __sub__(self, other: "Extended") -> "Extended":
        return Extended(self.finite - other.finite, self.infinities - other.infinities)

    def scatter_add(self, index: Tensor, terms: "Extended", weight: Tensor) -> "Extended":
        """Add `weight * terms` to the rows named by `index` (second-last axis); weights do not touch infinities."""
        return Extended(
            self.finite.index_add(-2, index, weight * terms.finite),
            self.infinities.index_add(-2, index, terms.infinities),
        )

    def rows(self, index: Tensor) -> "Extended":
        """Rows of the second-last axis."""
        return Extended(self.finite[..., index, :], self.infinities[..., index, :])

    def join(self) -> Tensor:
        """Put the value together again."""
        return self.finite.masked_fill(self.infinities > 0, -torch.inf)
