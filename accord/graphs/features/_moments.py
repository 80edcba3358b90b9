"""Mean and deviation of columns, of rows that come in portions."""

import torch
from torch import Tensor


class Moments:
    """Mean, deviation and range of each column of the rows so far; in float64, since sums of many rows lose digits."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.variance = self.least = self.most = torch.empty(0, dtype=torch.float64)

    def add(self, rows: Tensor) -> None:
        """Take in more rows [rows, columns] (Chan, Golub and LeVeque 1979)."""
        if not len(rows):
            return
        rows = rows.double()
        mean, variance, least, most = rows.mean(0), rows.var(0, correction=0), rows.amin(0), rows.amax(0)
        before, self.count = self.count, self.count + len(rows)
        if before:
            share, apart = len(rows) / self.count, mean - self.mean
            variance = self.variance + share * (variance - self.variance) + share * (1 - share) * apart.square()
            mean = self.mean + share * apart
            least, most = torch.minimum(least, self.least), torch.maximum(most, self.most)
        self.mean, self.variance, self.least, self.most = mean, variance, least, most

    def scales(self) -> Tensor:
        """The standard deviation of each column; 1 for a column that never changes, which cannot be scaled."""
        constant = self.least == self.most  # comparing values is exact; a variance is not
        return self.variance.sqrt().masked_fill(constant, 1.0)
