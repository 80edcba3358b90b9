"""Messages on disk: one file of each process, and a marker that names the last sweep of which all files are there.

The marker is written only when every process has written its file, and older files are deleted only after that. So a
run that is killed at any moment leaves a whole set.
"""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from accord._files import replacing
from accord.distributed._part import Part
from accord.errors import InputError
from accord.inference.kernels import Problem
from accord.learning.training._checkpoint import read_checkpoint, write_checkpoint

MARKER = "complete.json"


class Checkpoints:
    """The checkpoints of one run in a folder that all processes see.

    Args:
        folder: where they are.
        part: what this process holds.
        problem: its field.
        meet: waits for all processes.
    """

    def __init__(self, folder: Path, part: Part, problem: Problem, meet: Callable[[], None]) -> None:
        self.folder, self.part, self.meet = folder, part, meet
        self.content = _fingerprint(problem)

    def save(self, sweep: int, messages: Tensor) -> None:
        """Write the messages after a sweep; all processes call this together."""
        write_checkpoint(self._file(sweep), {"messages": messages}, {"content": self.content})
        self.meet()
        if self.part.rank == 0:
            with replacing(self.folder / MARKER) as beside:
                beside.write_text(json.dumps({"sweep": sweep, "ranks": self.part.ranks}))
        self.meet()
        for old in self.folder.glob(self._file(0).name.replace(f"{0:08d}", "*")):
            if old != self._file(sweep):
                old.unlink(missing_ok=True)

    def load(self) -> tuple[int, Tensor | None]:
        """The last sweep that was saved by all processes, and its messages; 0 and None if there is none."""
        try:
            marker = json.loads((self.folder / MARKER).read_text())
        except FileNotFoundError:
            return 0, None
        sweep = int(marker["sweep"])
        if marker["ranks"] != self.part.ranks:
            raise InputError(
                f"propagate: the checkpoint in {self.folder} is of {marker['ranks']} processes, not {self.part.ranks}. "
                "Start as many, or use another folder."
            )
        saved = read_checkpoint(self._file(sweep))
        if saved.values["content"] != self.content:
            raise InputError(
                f"propagate: the checkpoint in {self.folder} is of another graph, field or set of options. "
                "Use another folder, or delete it."
            )
        return sweep, saved.tensors["messages"]

    def _file(self, sweep: int) -> Path:
        return self.folder / f"messages-{sweep:08d}-{self.part.rank}-of-{self.part.ranks}.safetensors"


def _fingerprint(problem: Problem) -> str:
    """Of everything that decides how messages go on, except when to stop."""
    sums = [problem.semiring, str(problem.damping), str(list(problem.edge.shape)), str(problem.edge.dtype)]
    for tensor in (problem.arcs.edge_index, problem.node, problem.edge, problem.appearance):
        content = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        sums.append(f"{zlib.crc32(content.data):08x}")
    return " ".join(sums)
