"""Work for engines whose workers are fresh processes: they must be able to import it."""

import os
import signal
import warnings
from pathlib import Path

from accord.errors import ConvergenceWarning, GraphError


def times(factor, task, report=None):
    """The product of a shared value and a task."""
    return factor.get() * task


def prepare_times(factor, folder):
    """`times` for one argument; leaves a file for each process that prepares."""
    (folder / f"prepared-{os.getpid()}").touch()
    return lambda task: (task * factor.get(), os.getpid())


def doubtful(task, report=None):
    """Warns, and fails at task 1."""
    warnings.warn(f"task {task} is doubtful", ConvergenceWarning, stacklevel=1)
    if task == 1:
        raise GraphError("task 1: has no nodes.")
    return task


def broken(task, report=None):
    """A defect."""
    raise KeyError("no such key")


def die_once(folder: Path, task, report=None):
    """Kills its process at the first try of task 3."""
    kills = folder / f"killed-{task}"
    if task == 3 and not kills.exists():
        kills.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def die(task, report=None):
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


def threads(task, report=None):
    """Threads of torch in this process."""
    import torch

    return torch.get_num_threads()
