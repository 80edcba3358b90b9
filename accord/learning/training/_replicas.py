"""Replicas: which seed and label task each one trains, and how parameters are divided among them."""

import copy
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from accord.errors import OptionError

TASK_STRIDE = 1_000_003  # keeps the seeds of different tasks apart


@dataclass(frozen=True)
class Replicas:
    """Seeds x tasks, trained side by side on the same graphs; number n is seed n // tasks, task n % tasks.

    Args:
        seeds: seeds of weights and dropout.
        num_tasks: labels per node.
        members: the numbers of these replicas; None for all of seeds x tasks.
    """

    seeds: tuple[int, ...] = (0,)
    num_tasks: int = 1
    members: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not self.seeds or self.num_tasks < 1 or not self.numbers:
            raise OptionError(f"Replicas: {self} names no replica. Give at least one seed and one task.")

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of these replicas among seeds x tasks."""
        return range(len(self.seeds) * self.num_tasks) if self.members is None else self.members

    @property
    def count(self) -> int:
        """The number of replicas."""
        return len(self.numbers)

    @property
    def keys(self) -> list[int]:
        """The seed of each replica's weights and dropout; it depends on the replica alone."""
        return [seed + TASK_STRIDE * task for seed, task in map(self.seed_and_task, range(self.count))]

    def seed_and_task(self, place: int) -> tuple[int, int]:
        """The seed and the task of the replica at a position."""
        number = self.numbers[place]
        return self.seeds[number // self.num_tasks], number % self.num_tasks

    def subset(self, places: Sequence[int]) -> "Replicas":
        """The replicas at these positions."""
        return replace(self, members=tuple(self.numbers[place] for place in places))

    def pooled(self, size: int) -> "Replicas":
        """What remains when each `size` consecutive seeds form one ensemble, which is named by its first seed."""
        if size == 1:
            return self
        if self.members is not None or len(self.seeds) % size:
            raise OptionError(
                f"Replicas: {self} cannot be divided into ensembles of {size}. Give a multiple of {size} seeds, and "
                "all their tasks."
            )
        return replace(self, seeds=self.seeds[::size])

    def targets(self, y: Tensor) -> Tensor:
        """Labels [nodes] or [nodes, tasks] -> [R, nodes]."""
        columns = y[:, None] if y.dim() == 1 else y
        rows = columns.t().repeat(len(self.seeds), 1)
        return rows if self.members is None else rows[list(self.members)]


def learned(module: nn.Module) -> dict[str, Tensor]:
    """Everything a module has learned, by name: its parameters, and buffers such as running averages."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def owner(tensor: Tensor, name: str = "") -> int | None:
    """The replica that a parameter or buffer belongs to; None if it holds all replicas along its first axis.

    Built-in encoders stack their parameters along a leading replica axis. Copies of a foreign module belong to one
    replica each; an attribute of their parameters (`replica`) or their names ("replicas.3.") give its number.
    """
    copy = re.search(r"(?:^|\.)replicas\.(\d+)\.", name)
    return int(copy[1]) if copy else getattr(tensor, "replica", None)


def spread(values: Tensor, tensor: Tensor, name: str = "") -> Tensor:
    """One value for each replica [R], shaped to broadcast against a parameter or buffer."""
    mine = owner(tensor, name)
    moved = values.to(tensor.device)
    moved = moved if moved.dtype == torch.bool else moved.to(tensor.dtype)
    return moved[mine] if mine is not None else moved.reshape(-1, *(1,) * (tensor.dim() - 1))


def is_stacked(modules: Iterable[nn.Module]) -> bool:
    """Whether everything that modules have learned is stacked along a replica axis, so that replicas can be removed."""
    return all(owner(value, name) is None for module in modules for name, value in learned(module).items())


@torch.no_grad()
def cut(module: nn.Module, places: Tensor) -> None:
    """Keep the replicas at some positions, in place; the parameters remain the same objects."""
    for value in learned(module).values():
        value.grad = None
        value.data = value.data.index_select(0, places.to(value.device))
    set_num_replicas(module, len(places))


@torch.no_grad()
def copy_of(module: nn.Module, places: Tensor) -> nn.Module:
    """A copy of a module that holds the replicas at some positions."""
    memo: dict[int, object] = {}
    for value in learned(module).values():
        some = value.detach().index_select(0, places.to(value.device))
        memo[id(value)] = nn.Parameter(some, value.requires_grad) if isinstance(value, nn.Parameter) else some
    copied = copy.deepcopy(module, memo)  # tensors in the memo are used instead of copies of the whole ones
    set_num_replicas(copied, len(places))
    return copied


def set_num_replicas(module: nn.Module, count: int) -> None:
    """Set the number of replicas of a module and all modules inside it."""
    for inner in module.modules():
        if hasattr(inner, "num_replicas"):
            setattr(inner, "num_replicas", count)  # noqa: B010  # a plain number, which torch's type hints do not allow
