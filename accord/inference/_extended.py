"""Sums of log-values that may be -inf, from which a term can be removed again.

`total - term` is NaN when both are -inf. So a sum is kept as its finite part and its number of infinite terms. Taking a
term out subtracts from both, and the result is -inf only if the count is above zero.
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
        """Separate finite and infinite entries of a tensor."""
        barred = values == -torch.inf
        return cls(values.masked_fill(barred, 0.0), barred.to(values.dtype))

    def __sub__(self, other: "Extended") -> "Extended":
        return Extended(self.finite - other.finite, self.infinities - other.infinities)

    def scatter_add(self, index: Tensor, terms: "Extended", weight: Tensor) -> "Extended":
        """Add `weight * terms` to the rows `index` of the second-last axis; counts of infinities are not weighted."""
        return Extended(
            self.finite.index_add(-2, index, weight * terms.finite),
            self.infinities.index_add(-2, index, terms.infinities),
        )

    def scatter_add_(self, index: Tensor, terms: Tensor, barred: bool, weight: Tensor | None = None) -> None:
        """The same in place and without gradient, from plain `terms`; `barred` tells whether any may be -inf."""
        # index_add_ is up to fifteen times slower on CPUs for a single replica.
        rows = index[:, None].expand_as(terms)
        terms = terms.to(self.finite.dtype)
        if barred:
            split = Extended.split(terms)
            self.infinities.scatter_add_(-2, rows, split.infinities)
            terms = split.finite
        self.finite.scatter_add_(-2, rows, terms if weight is None else weight * terms)

    def shifted(self) -> tuple["Extended", Tensor]:
        """The values relative to the largest of each row, and those largest values [..., rows].

        Once a large sum is rounded, only few digits of the differences within its row are left.
        """
        level = self.join().detach().amax(-1, keepdim=True)
        level = level.masked_fill(level == -torch.inf, 0.0)
        return Extended(self.finite - level, self.infinities), level.squeeze(-1)

    def rows(self, index: Tensor) -> "Extended":
        """Rows of the second-last axis."""
        return Extended(self.finite[..., index, :], self.infinities[..., index, :])

    def join(self) -> Tensor:
        """The values as one tensor."""
        return self.finite.masked_fill(self.infinities > 0, -torch.inf)


def has_infinity(values: Tensor) -> bool:
    """Whether any value is -inf, found without a mask as large as the values."""
    return bool(values.numel()) and float(values.detach().amin()) == -torch.inf
