"""How a table tells what it is doing: the name of a job, and a row of numbers at every look at validation data."""

from collections.abc import Callable

from accord.learning import HistoryRow

Announce = Callable[[str, HistoryRow | None], None]


def silence(job: str, row: HistoryRow | None) -> None:
    """Tell nobody."""
