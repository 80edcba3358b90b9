"""Errors of one process, and what each of several raises."""

from accord.distributed._together import together
from accord.errors import DataNotFoundError, OptionError

RAISED = [
    OptionError("every is 0"),
    DataNotFoundError("there is no such folder"),
    OSError(28, "No space left on device", "/data/labels"),
    FileNotFoundError(2, "No such file or directory", "/data/graph"),
    PermissionError(13, "Permission denied"),
    OSError("without a number"),
    MemoryError("out of memory"),
]


def raised_by_all(rank, ranks):
    """The kind, text and number of what this process raises where the last process fails."""
    found = []
    for error in RAISED:
        try:
            with together():
                if rank == ranks - 1:
                    raise error
        except Exception as raised:
            found.append((type(raised).__name__, str(raised), getattr(raised, "errno", None)))
    return found
