"""Checks of a file before it is read: it is a regular file, and its content fits into memory."""

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from accord._memory import available_memory, is_out_of_memory
from accord.errors import GraphError, TooLargeError

TEXT_GROWTH = 2  # as Python objects, numbers and strings take at least twice the bytes of their text
SMALL = 2**20  # bytes; less is read without asking how much memory is available, which takes a millisecond


def check_regular_file(path: Path) -> int:
    """Return the size of a file in bytes; a pipe, a device or a socket is refused, because reading it may never end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise GraphError(f"{path}: is not a regular file, but a pipe, a device or a socket. Copy it to a file first.")
    return status.st_size


def check_text_file(path: Path) -> None:
    """Refuse a text file that is not regular, or that does not fit into memory once it is parsed."""
    check_memory(check_regular_file(path) * TEXT_GROWTH, f"{path}: reading it")


def check_memory(needed: int, where: str) -> None:
    """Refuse content that takes more bytes than are available, before any of them is allocated."""
    available = available_memory(torch.device("cpu")) if needed > SMALL else None
    if available is not None and needed > available:
        raise TooLargeError(
            f"{where} needs {needed / 1e9:,.1f} GB of memory, but {available / 1e9:,.1f} GB are available. Check that "
            "the file is not damaged, or divide the graph into smaller ones."
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Report memory that runs out while a file is read as an error of the file."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise TooLargeError(
            f"{path}: reading it needs more memory than is available ({error}). Check that the file is not damaged, or "
            "divide the graph into smaller ones."
        ) from error
