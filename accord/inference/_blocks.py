"""Edges a block at a time, so that temporaries stay small beside the graph itself."""

from collections.abc import Iterator

# A block's temporaries of a few megabytes stay in cache, and its arithmetic outweighs the overhead of a step.
NUMBERS_PER_BLOCK = 2**20


def blocks(count: int, each: int = 1) -> Iterator[slice]:
    """Consecutive ranges that cover `count` items of `each` numbers."""
    step = max(NUMBERS_PER_BLOCK // max(each, 1), 1)
    return (slice(first, min(first + step, count)) for first in range(0, count, step))
