"""Edges a block at a time, so that what is made of them on the way does not take more memory than the graph itself."""

from collections.abc import Iterator

BLOCK = 2**20  # numbers: temporaries of a few megabytes stay in cache, and a step over them outweighs its overhead


def blocks(count: int, each: int = 1) -> Iterator[slice]:
    """Consecutive ranges that cover `count` places, of which each stands for so many numbers."""
    step = max(BLOCK // max(each, 1), 1)
    return (slice(first, min(first + step, count)) for first in range(0, count, step))
