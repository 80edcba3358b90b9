"""Downloads by PyG's dataset classes into the user's cache, for data that no local file has."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from accord._files import cache_folder
from accord.datasets.benchmarks._files import search_folders
from accord.errors import DataNotFoundError

Result = TypeVar("Result")


def fetch(file_name: str, folder: str, load: Callable[[str], Result]) -> Result:
    """Load a data set by a PyG class in a folder of the cache; the error says what was tried and what to do.

    Args:
        file_name: the local file that was not found.
        folder: name of the data set's folder in the cache.
        load: takes the path of that folder and returns the data set; may download.
    """
    root = fetched_folder(folder)
    try:
        return load(str(root))
    # PyG has no error class for failed downloads (network, disk, a broken archive, a missing package), and the
    # advice is the same for all of them.
    except Exception as error:
        looked_in = ", ".join(str(path) for path in search_folders())
        raise DataNotFoundError(
            f"{file_name} was not found in {looked_in}, and PyG could not fetch the data into {root} "
            f"({type(error).__name__}: {error}). Put {file_name} into one of these folders (or set ACCORD_DATA "
            "to the folder that has it), or try again with a network connection; if an earlier download was "
            f"interrupted, remove {root} first."
        ) from error


def fetched_folder(folder: str) -> Path:
    """The folder of the cache where `fetch` stores a data set."""
    return cache_folder() / "pyg" / folder
