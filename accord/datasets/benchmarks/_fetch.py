"""The last resort: PyG's own dataset classes, which download into the user's cache."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from accord._files import cache_folder
from accord.datasets.benchmarks._files import search_folders
from accord.errors import DataNotFoundError

Result = TypeVar("Result")


def fetch(file_name: str, folder: str, load: Callable[[str], Result]) -> Result:
    """Call a PyG dataset class on a folder of the cache, or say what was tried and what to do.

    Args:
        file_name: the file that was looked for in vain.
        folder: name of the dataset's folder in the cache.
        load: takes the folder's path and returns the dataset; may download.
    """
    root = fetched_folder(folder)
    try:
        return load(str(root))
    # Anything can go wrong here (network, disk, a half-written archive, a package that reads it missing), and
    # fetching has no error of its own in PyG; whatever it was, the user needs the same advice.
    except Exception as error:
        looked_in = ", ".join(str(path) for path in search_folders())
        raise DataNotFoundError(
            f"{file_name} was not found in {looked_in}, and PyG could not fetch the data into {root} "
            f"({type(error).__name__}: {error}). Put {file_name} into one of these folders (or set ACCORD_DATA "
            "to the folder that has it), or try again with a network connection; if an earlier download was "
            f"cut short, remove {root} first."
        ) from error


def fetched_folder(folder: str) -> Path:
    """Where `fetch` keeps a dataset."""
    return cache_folder() / "pyg" / folder
