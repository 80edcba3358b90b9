"""Limits of the server, and the answer to a request that exceeds one of them."""

import json
from dataclasses import dataclass
from typing import Any

from accord.errors import OptionError

MEGABYTE = 2**20
EXPANSION = 8  # how many times its size a compressed upload may take in memory


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may cost, and how many may wait."""

    megabytes: float = 64  # of a request's body
    nodes: int = 50_000  # of a graph
    edges: int = 500_000  # of a graph, in the form that the file has
    graphs: int = 256  # in one request
    seconds: float = 60  # from the arrival of a request to its answer
    waiting: int = 64  # requests that wait or are worked on; further ones are asked to come back
    workers: int = 1  # processes that answer requests, each with its own copy of the model

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise OptionError(f"--max-{name}: is {value:g}, but a number above 0 is needed.")

    @property
    def bytes(self) -> int:
        """The most bytes of a body."""
        return int(self.megabytes * MEGABYTE)


class Refused(Exception):
    """A request that is refused, with an HTTP status and a message that says what to fix.

    Args:
        status: the HTTP status.
        message: what is wrong and what to do.
        code: a short name that programs can rely on.
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(self, status: int, message: str, code: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.retry_after = status, message, code, retry_after

    def body(self) -> bytes:
        """The JSON that clients get."""
        return dump({"error": {"code": self.code, "message": self.message}})


def dump(value: Any) -> bytes:
    """JSON of plain values; text is escaped to ASCII, because a name may hold half of a surrogate pair."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
