"""Settings of torch that hold while a run goes on, and are put back afterwards."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

FABRIC_PRECISIONS = {"tf32": "32-true"}  # what Lightning Fabric calls the rest; others have the same name there


@contextmanager
def product_precision(precision: str) -> Iterator[None]:
    """Let tensor cores multiply float32 numbers, rounded to 10 bits of mantissa, where "tf32" is asked for."""
    before = torch.get_float32_matmul_precision()
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        if precision == "tf32":
            torch.set_float32_matmul_precision(before)


@contextmanager
def determinism(wanted: bool) -> Iterator[None]:
    """Ask torch for the same bits every run."""
    before = torch.are_deterministic_algorithms_enabled()
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it; read when CUDA starts
    torch.use_deterministic_algorithms(wanted or before)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
