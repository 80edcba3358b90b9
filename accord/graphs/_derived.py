"""What is derived from something that does not change, made once."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Derived:
    """Values by key; the key names everything that a value depends on beside its owner."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Any] = {}

    def get(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """What `build` makes, made once."""
        if key not in self._values:
            self._values[key] = build()
        made: Value = self._values[key]
        return made
