"""How large tables may become, and the errors that name what is too large."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from accord.errors import InputTypeError, OptionError, TooLargeError

LARGEST = 2**60  # entries; more are not counted exactly
REMEDY = (
    "Raise max_table if there is memory, clamp some nodes, solve fewer graphs or replicas at a time, or use "
    "propagate (approximate)."
)


@dataclass(frozen=True)
class Limits:
    """Most entries of tables, all replicas together."""

    one: int
    all: int
    given: int  # max_table
    multiple: int  # `all` as a multiple of max_table
    where: str


def check_limits(max_table: int, multiple: int, where: str) -> Limits:
    """The limits that follow from `max_table`."""
    if isinstance(max_table, bool) or not isinstance(max_table, int):
        raise InputTypeError(f"{where}: max_table is a {type(max_table).__name__}, not an int.")
    if max_table < 1:
        raise OptionError(f"{where}: max_table is {max_table}, but a table has at least one entry.")
    one = min(max_table, LARGEST)
    return Limits(one, min(multiple * one, LARGEST), max_table, multiple, where)


def too_large_clique(sizes: Sequence[int], replicas: int, limits: Limits) -> TooLargeError:
    """A clique whose nodes have `sizes` possible states has too large a table."""
    powers = sorted(Counter(sizes).items())
    states = " * ".join(f"{size}**{count}" for size, count in powers)
    return TooLargeError(
        f"{limits.where}: elimination meets a clique of {len(sizes)} nodes, and {states} states x {replicas} "
        f"replicas are more than max_table = {limits.given} entries. {REMEDY}"
    )


def too_large_tables(widest: int, together: int, limits: Limits) -> TooLargeError:
    """All tables together are too large."""
    return TooLargeError(
        f"{limits.where}: the widest clique has {widest} nodes, and all tables together {together} "
        f"entries, more than {limits.multiple} x max_table = {limits.multiple * limits.given}. {REMEDY}"
    )
