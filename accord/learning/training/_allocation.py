"""Memory that is freed while networks train on a CPU stays with the process, to be used again.

By itself glibc maps every tensor of more than 32 MiB anew and unmaps it when it is freed. Then the system clears its
pages each time, which takes as long as computing what goes into them. Free blocks that none fits take memory, up to as
much again, so very large tensors, which could least afford it, are mapped as ever. Other C libraries are left alone.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as <malloc.h> numbers them
NEVER = -1  # free memory at the end of the heap is not given back
KEPT = 2**27  # bytes of a block, at most
USUAL = 2**25  # where glibc gets to by itself as blocks are freed, which it no longer does once told anything


@contextmanager
def kept_memory(device: torch.device) -> Iterator[None]:
    """Keep what is freed in here; at the end all that is free goes back to the system."""
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
    """The C library of this process, where it is glibc."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
