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

    def scatter_add_(self, index: Tensor, terms: Tensor, barred: bool, weight: Tensor | None = None) -> None:
        """The same in place, of terms not yet taken apart, for sums that need no gradient; barred: some may be -inf."""
        # Not index_add_: on CPUs that is up to fifteen times slower for a single replica.
        rows = index[:, None].expand_as(terms)
        if barred:
            split = Extended.split(terms)
            self.infinities.scatter_add_(-2, rows, split.infinities)
            terms = split.finite
        self.finite.scatter_add_(-2, rows, terms if weight is None else weight * terms)

    def rows(self, index: Tensor) -> "Extended":
        """Rows of the second-last axis."""
        return Extended(self.finite[..., index, :], self.infinities[..., index, :])

    def join(self) -> Tensor:
        """Put the value together again."""
        return self.finite.masked_fill(self.infinities > 0, -torch.inf)


def has_infinity(values: Tensor) -> bool:
    """Whether there is a -inf, without a mask as large as the values."""
    return bool(values.numel()) and float(values.detach().amin()) == -torch.inf
