"""Search for benchmark files, and reading of their arrays."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from accord._files import cache_folder
from accord.datasets._archives import read_archive
from accord.errors import GraphError


def search_folders() -> tuple[Path, ...]:
    """Folders to search, in this order: `$ACCORD_DATA` if set, then the cache."""
    chosen = os.environ.get("ACCORD_DATA")
    return (*([Path(chosen).expanduser()] if chosen else []), cache_folder())


def find_file(name: str) -> Path | None:
    """The first file of that name in the search folders, or None."""
    return next((folder / name for folder in search_folders() if (folder / name).is_file()), None)


def read_arrays(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Read only the named arrays of an .npz file, without unpickling.

    Args:
        path: the file.
        required: names that must be in it.
        optional: names that are read if present.
    """
    arrays, held = read_archive(path, (*required, *optional), f"It may be incomplete: replace or remove {path}.")
    missing = [name for name in required if name not in arrays]
    if missing:
        raise GraphError(
            f"{path.name}: has no array {', '.join(missing)} (it holds {', '.join(held)}). "
            f"It is not the benchmark file of that name: replace or remove {path}."
        )
    return arrays
