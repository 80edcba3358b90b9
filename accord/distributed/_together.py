"""Calls that all processes make together: sums, gathering, and errors that reach every process.

Without a process group there is one process, and nothing is sent.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch import Tensor

from accord.errors import AccordError

Group = dist.ProcessGroup | None  # None for all processes


def place(group: Group = None) -> tuple[int, int]:
    """The number of this process, and how many there are."""
    if not dist.is_initialized():
        return 0, 1
    return dist.get_rank(group), dist.get_world_size(group)


def total(values: Tensor, group: Group = None) -> Tensor:
    """The sum of everybody's values, in place."""
    if place(group)[1] > 1:
        dist.all_reduce(values, group=group)
    return values


def gather(value: Any, group: Group = None) -> list[Any]:
    """Everybody's value, by number of the process; any small object."""
    ranks = place(group)[1]
    found: list[Any] = [value] * ranks
    if ranks > 1:
        dist.all_gather_object(found, value, group)
    return found


@contextmanager
def together(group: Group = None) -> Iterator[None]:
    """Raise in every process what one of them raises in the block.

    The others would wait for its messages until they time out. The block itself must not send anything.
    """
    own: AccordError | None = None
    try:
        yield
    except AccordError as error:
        own = error
    found = gather(None if own is None else (type(own), str(own)), group)
    if own is not None:
        raise own
    for rank, other in enumerate(found):
        if other is not None:
            raise other[0](f"{other[1]} (process {rank})")
