"""How a table tells what it is doing: the name of a job, and a row of numbers at every look at validation data."""

from collections.abc import Callable

from accord.learning import Row

Announce = Callable[[str, Row | None], None]


def silence(job: str, row: Row | None) -> None:
    """Tell nobody."""
