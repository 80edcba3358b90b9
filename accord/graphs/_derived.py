"""A cache for values that are computed from an immutable object."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Derived:
    """Values by key; a key names everything that its value depends on beside the owner of the cache."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """The result of `build`, computed once for each key."""
        if key not in self._values:
            self._values[key] = build()
        made: Value = self._values[key]
        return made
