"""Sparse products by Triton against dense ones; in Triton's interpreter if there is no GPU."""

import pytest
import torch
from support.triton_interpreter import DEVICE

from accord.encoders.replica._operators import multiply, silence_beta_warning
from accord.encoders.replica.triton import _product


def matrices(width, dtype=torch.float32):
    generator = torch.Generator().manual_seed(width)
    dense = torch.randn(7, 9, generator=generator) * (torch.rand(7, 9, generator=generator) < 0.6)
    dense[3] = 0  # a row without entries
    silence_beta_warning()
    columns = torch.randn(9, width, generator=generator)
    return dense.to(DEVICE), dense.to_sparse_csr().to(DEVICE), columns.to(DEVICE, dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 5, 20])
def test_products_equal_dense_ones(width, dtype, monkeypatch):
    monkeypatch.setattr(_product, "MAX_BLOCK_COLUMNS", 8)
    dense, matrix, columns = matrices(width, dtype)
    wanted = (dense.double() @ columns.double()).to(dtype)
    found = _product.sparse_product(matrix, columns)
    torch.testing.assert_close(found, wanted, rtol=1e-5 if dtype == torch.float32 else 8e-3, atol=1e-6)


def test_products_on_a_gpu_use_the_kernel(monkeypatch):
    dense, matrix, columns = matrices(6)
    monkeypatch.setattr("accord.encoders.replica._operators.suits", lambda *_: True)
    shaped = columns.view(9, 2, 3)
    found = multiply(matrix, shaped)
    torch.testing.assert_close(found, (dense @ columns).view(7, 2, 3))
    monkeypatch.setattr("accord.encoders.replica._operators.suits", lambda *_: False)
    torch.testing.assert_close(multiply(matrix, shaped), found)
