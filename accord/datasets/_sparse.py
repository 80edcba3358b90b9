"""Sparse features in files: CSR arrays to dense tensors."""

import torch
from torch import Tensor


def dense_rows(indptr: Tensor, indices: Tensor, values: Tensor | None, shape: tuple[int, int]) -> Tensor:
    """A CSR matrix as a dense float32 tensor; without `values` all its entries are 1."""
    dense = torch.zeros(shape)
    row = torch.repeat_interleave(torch.arange(shape[0]), indptr.diff())
    dense[row, indices] = torch.ones(indices.numel()) if values is None else values.float()
    return dense
