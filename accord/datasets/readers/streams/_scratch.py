"""A temporary file of graphs, of which any one can be read by itself."""

import json
import tempfile
import weakref
from array import array
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor
from torch_geometric.data import Data

from accord.graphs.structure._ego import SHARED_LISTS


class Scratch:
    """Graphs on disk in the order in which they were added; memory holds 16 bytes for each.

    The file has no name, so it is gone when the process ends, however it ends.

    Args:
        folder: where the file lies; made if needed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise self._explained(error) from error
        weakref.finalize(self, self._file.close)
        self._ends = array("q", [0])  # of each graph; the next one starts there
        self._tensors = array("q")  # where the tensors of each graph start
        self._shared: list[dict[str, Any]] = []  # lists of names and kinds that many graphs have alike
        self._keys: dict[str, int] = {}  # where they are, by their json

    def __len__(self) -> int:
        return len(self._tensors)

    def add(self, graph: Data) -> None:
        """Write one more graph: tensors, and whatever json can hold."""
        tensors = {name: value.contiguous() for name, value in graph if isinstance(value, Tensor)}
        others = {name: value for name, value in graph if name not in tensors}
        shared = json.dumps({name: others.pop(name) for name in SHARED_LISTS if name in others})
        key = self._keys.setdefault(shared, len(self._shared))
        if key == len(self._shared):
            self._shared.append(json.loads(shared))
        text, content = json.dumps([key, others]).encode(), save(tensors)
        try:
            self._file.write(text)
            self._file.write(content)
        except OSError as error:
            raise self._explained(error) from error
        self._tensors.append(self._ends[-1] + len(text))
        self._ends.append(self._tensors[-1] + len(content))

    def read(self, number: int) -> Data:
        """The graph of that number."""
        start, tensors, end = self._ends[number], self._tensors[number], self._ends[number + 1]
        self._file.seek(start)
        content = self._file.read(end - start)
        key, others = json.loads(content[: tensors - start])
        return Data(**load(content[tensors - start :]), **self._shared[key], **others)

    def _explained(self, error: OSError) -> OSError:
        text = (
            f"{error.strerror}; graphs that are streamed are kept there in a temporary file. Choose a folder with "
            "room: --scratch FOLDER on the command line, or GraphFiles(..., scratch=FOLDER)"
        )
        return OSError(error.errno, text, str(self.folder))
