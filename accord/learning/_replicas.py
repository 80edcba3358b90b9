"""Which replica stands for which seed and which label task."""

import re
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from accord.errors import OptionError

TASK_STRIDE = 1_000_003  # keeps the seeds of different tasks apart


@dataclass(frozen=True)
class Replicas:
    """Seeds x tasks, trained side by side on the same graphs; replica r is seed r // tasks, task r % tasks."""

    seeds: tuple[int, ...] = (0,)
    num_tasks: int = 1

    def __post_init__(self) -> None:
        if not self.seeds or self.num_tasks < 1:
            raise OptionError(f"Replicas: {self} names no replica. Give at least one seed and one task.")

    @property
    def count(self) -> int:
        """How many replicas there are."""
        return len(self.seeds) * self.num_tasks

    @property
    def keys(self) -> list[int]:
        """Seed of each replica's weights and dropout; it depends on nothing but the replica itself."""
        return [seed + TASK_STRIDE * task for seed in self.seeds for task in range(self.num_tasks)]

    def targets(self, y: Tensor) -> Tensor:
        """Labels [nodes] or [nodes, tasks] -> [R, nodes]."""
        columns = y[:, None] if y.dim() == 1 else y
        return columns.t().repeat(len(self.seeds), 1)


def learned(module: nn.Module) -> dict[str, Tensor]:
    """Everything a module has learned, by name: its parameters, and buffers such as running averages."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def owner(tensor: Tensor, name: str = "") -> int | None:
    """The one replica that a parameter or buffer belongs to; None where it holds all of them along its first axis.

    Built-in encoders stack their parameters along a leading replica axis; copies of somebody else's module belong to
    one replica alone, and their parameters (attribute `replica`) or names ("replicas.3.") say to which.
    """
    copy = re.search(r"(?:^|\.)replicas\.(\d+)\.", name)
    return int(copy[1]) if copy else getattr(tensor, "replica", None)


def spread(values: Tensor, tensor: Tensor, name: str = "") -> Tensor:
    """One value for each replica [R], shaped to go with a parameter or buffer."""
    mine = owner(tensor, name)
    moved = values.to(tensor.device)
    moved = moved if moved.dtype == torch.bool else moved.to(tensor.dtype)
    return moved[mine] if mine is not None else moved.reshape(-1, *(1,) * (tensor.dim() - 1))
