"""Settings of torch and of the C library that hold during training and are restored afterwards."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

FABRIC_PRECISIONS = {"tf32": "32-true", "64-true": "32-true"}  # what Lightning Fabric is told; the rest is done here
# Options of mallopt, as <malloc.h> numbers them.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
NEVER = -1  # free memory at the end of the heap is not returned to the system
KEPT = 2**27  # bytes of the largest block that is kept
USUAL = 2**25  # the threshold that glibc reaches by itself; it stops adapting once the threshold is set


@contextmanager
def usual_torch() -> Iterator[None]:
    """Record gradients and make new tensors float32, whatever the caller has set.

    The default type belongs to the whole process: other threads see float32 during the block.
    """
    before = torch.get_default_dtype()
    if before != torch.float32:
        torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        if before != torch.float32:
            torch.set_default_dtype(before)


@contextmanager
def product_precision(precision: str) -> Iterator[None]:
    """With "tf32", let tensor cores multiply float32 numbers rounded to 10 bits of mantissa."""
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
    """Ask torch for the same bits in every run."""
    before = torch.are_deterministic_algorithms_enabled()
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by cuBLAS; read when CUDA starts
    torch.use_deterministic_algorithms(wanted or before)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


@contextmanager
def kept_memory(device: torch.device) -> Iterator[None]:
    """On a CPU, keep freed memory in the process and use it again; at the end it is returned to the system.

    By default glibc maps every tensor of more than 32 MiB anew and unmaps it when it is freed. The system then clears
    its pages each time, which takes as long as computing what goes into them. Kept blocks that fit no later tensor
    cost memory, up to as much again, so very large tensors are mapped as by default. Other C libraries are not changed.
    """
    library = _glibc()
    if library is None or device.type != "cpu":
        yield
        return
    library.mallopt(MMAP_THRESHOLD, KEPT)
    library.mallopt(TRIM_THRESHOLD, NEVER)
    try:
        yield
    finally:
        library.mallopt(MMAP_THRESHOLD, USUAL)
        library.mallopt(TRIM_THRESHOLD, 2 * USUAL)
        library.malloc_trim(0)


@lru_cache(maxsize=1)
def _glibc() -> ctypes.CDLL | None:
    """The C library of this process, if it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
