"""Messages on disk: one file of each process, and a marker that names the last sweep of which all files are there.

The marker is written only when every process has written its file, and older files are deleted only after that. So a
run that is killed at any moment leaves a whole set.
"""

import json
import math
import zlib
from pathlib import Path

import torch
from torch import Tensor

from accord._files import write_text
from accord.distributed._part import Part
from accord.distributed._together import gather, together
from accord.errors import InputError, OptionError
from accord.inference.kernels import Problem
from accord.learning.training._checkpoint import read_checkpoint, write_checkpoint

MARKER = "complete.json"


class Checkpoints:
    """The checkpoints of one run in a folder that all processes share.

    Args:
        folder: where they are.
        part: what this process holds.
        problem: its field.
    """

    def __init__(self, folder: Path, part: Part, problem: Problem) -> None:
        self.folder, self.part, self.group = folder, part, part.halo.group
        self.content = _fingerprint(problem)

    def save(self, sweep: int, residual: float, messages: Tensor) -> None:
        """Write the messages after a sweep, and the change that it made; all processes call this together."""
        with together(self.group):
            write_checkpoint(self._file(sweep), {"messages": messages}, {"content": self.content})
        with together(self.group):
            if self.part.rank == 0:
                marker = {"sweep": sweep, "ranks": self.part.ranks, "residual": residual}
                write_text(self.folder / MARKER, json.dumps(marker))
        with together(self.group):
            for old in self.folder.glob(self._file(0).name.replace(f"{0:08d}", "*")):
                if old != self._file(sweep):
                    old.unlink(missing_ok=True)

    def load(self, max_sweeps: int) -> tuple[int, float, Tensor | None]:
        """The last sweep that all processes have saved, the change it made, and the messages after it.

        0, infinity and None if there is none. The first process reads the marker for all.
        """
        with together(self.group):
            marker = self._marker() if self.part.rank == 0 else None
        marker = gather(marker, self.group)[0]
        if marker is None:
            return 0, math.inf, None
        sweep, ranks, residual = marker
        with together(self.group):
            if ranks != self.part.ranks:
                raise InputError(
                    f"propagate: the checkpoint in {self.folder} is of {ranks} processes, not {self.part.ranks}. "
                    "Start as many, or use another folder."
                )
            if sweep > max_sweeps:
                raise OptionError(
                    f"propagate: the checkpoint in {self.folder} is of sweep {sweep}, but max_sweeps is {max_sweeps}. "
                    f"Use another folder, or allow {sweep} sweeps or more."
                )
            return sweep, residual, self._messages(sweep)

    def _marker(self) -> tuple[int, int, float] | None:
        """Sweep, number of processes and residual of the last whole set; None if there is none."""
        path = self.folder / MARKER
        try:
            found = json.loads(path.read_text())
            return int(found["sweep"]), int(found["ranks"]), float(found["residual"])
        except FileNotFoundError:
            return None
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: is damaged ({error!r}). Delete the folder, or use another one.") from error

    def _messages(self, sweep: int) -> Tensor:
        path = self._file(sweep)
        if not path.is_file():
            raise InputError(
                f"propagate: {path} is not there, but the first process finds a checkpoint of sweep {sweep} in this "
                "folder. Give all processes a folder that they share; or use another one to start again."
            )
        saved = read_checkpoint(path)
        if saved.values.get("content") != self.content:
            raise InputError(
                f"propagate: the checkpoint in {self.folder} is of another graph, field or set of options. "
                "Use another folder, or delete it."
            )
        return saved.tensors["messages"]

    def _file(self, sweep: int) -> Path:
        return self.folder / f"messages-{sweep:08d}-{self.part.rank}-of-{self.part.ranks}.safetensors"


def _fingerprint(problem: Problem) -> str:
    """Of everything that decides how messages go on, except when to stop."""
    sums = [problem.semiring, str(problem.damping), str(list(problem.edge.shape)), str(problem.edge.dtype)]
    for tensor in (problem.arcs.edge_index, problem.node, problem.edge, problem.appearance):
        content = tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        sums.append(f"{zlib.crc32(content.data):08x}")
    return " ".join(sums)
