"""Public names of a package that are loaded when they are first used."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package (PEP 562) whose names are loaded from their modules at first use.

    Args:
        package: its `__name__`.
        homes: the names that each module offers; modules by name within the package.
    """
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names}
    own = vars(import_module(package))

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        own[name] = value = getattr(import_module(home_of[name]), name)
        return value

    return load, lambda: sorted({*own, *home_of})
