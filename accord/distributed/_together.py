"""Calls that all processes make together: sums, gathering, and errors that reach every process.

Without a process group there is one process, and nothing is sent.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from accord.errors import AccordError, ProcessLostError

Group = dist.ProcessGroup | None  # None for all processes


def place(group: Group = None) -> tuple[int, int]:
    """The number of this process, and how many there are."""
    if not dist.is_initialized():
        return 0, 1
    return dist.get_rank(group), dist.get_world_size(group)


def stage(values: Tensor, group: Group = None) -> Tensor:
    """The values where the group takes them from: gloo from the host, nccl from the GPU of this process."""
    if dist.get_backend(group) != "nccl":
        return values.cpu()
    return values if values.is_cuda else values.to(torch.device("cuda", torch.cuda.current_device()))


@contextmanager
def peers(group: Group = None) -> Iterator[None]:
    """Turn the errors of a connection into one that says what to do."""
    try:
        yield
    except RuntimeError as error:
        rank, ranks = place(group)
        raise ProcessLostError(
            f"accord.distributed: process {rank} of {ranks} lost another one: {str(error).splitlines()[0]}. Start all "
            "processes again; propagation with a checkpoint folder goes on where all of them were."
        ) from error


def total(values: Tensor, group: Group = None) -> Tensor:
    """The sum of everybody's values; may be the same tensor."""
    return _reduce(values, dist.ReduceOp.SUM, group)


def largest(value: float, group: Group = None) -> float:
    """The largest of everybody's values."""
    return float(_reduce(torch.tensor([value], dtype=torch.float64), dist.ReduceOp.MAX, group))


def gather(value: Any, group: Group = None) -> list[Any]:
    """Everybody's value, by number of the process; any small object."""
    ranks = place(group)[1]
    found: list[Any] = [value] * ranks
    if ranks > 1:
        with peers(group):
            dist.all_gather_object(found, value, group)
    return found


@contextmanager
def together(group: Group = None) -> Iterator[None]:
    """Raise in every process what one of them raises in the block: our errors, and those of files and memory.

    The others would wait for its messages until they time out. The block itself must not send anything.
    """
    own: Exception | None = None
    try:
        yield
    except (AccordError, OSError, MemoryError) as error:
        own = error
    found = gather(None if own is None else _described(own), group)
    if own is not None:
        raise own
    for rank, other in enumerate(found):
        if other is not None:
            kind, code, text, file = other
            text = f"{text} (process {rank})"
            raise kind(text) if code is None else kind(code, text, file)


def _described(error: Exception) -> tuple[type[Exception], int | None, str, Any]:
    """Its type, number, text and file; errors of the system have the last two apart, and subclasses by their number."""
    if isinstance(error, OSError) and not isinstance(error, AccordError):
        return OSError, error.errno, str(error) if error.errno is None else str(error.strerror), error.filename
    return type(error), None, str(error), None


def _reduce(values: Tensor, operation: dist.ReduceOp.RedOpType, group: Group) -> Tensor:
    if place(group)[1] == 1:
        return values
    staged = stage(values, group)
    with peers(group):
        dist.all_reduce(staged, operation, group=group)
    return staged.to(values.device)
