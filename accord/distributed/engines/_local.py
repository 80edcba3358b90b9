"""The engine of one process: tasks one after another, right here."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch

from accord.distributed.engines._interface import Engine, Report, Result, Shared, Task, Value


@dataclass(frozen=True, eq=False)
class Held(Shared[Value]):
    """A value of this process."""

    value: Value

    def get(self) -> Value:
        """The value itself."""
        return self.value


class LocalEngine(Engine):
    """Does each task when its turn comes, with all threads of torch."""

    workers = 1

    @property
    def has_gpus(self) -> bool:  # type: ignore[override]  # asked of torch only when needed
        """Whether torch finds a GPU."""
        return torch.cuda.is_available()

    def share(self, value: Value) -> Shared[Value]:
        """Hold a value."""
        return Held(value)

    def map(
        self, work: Callable[[Task, Report], Result], tasks: Iterable[Task], report: Report | None = None
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks in their order."""
        for task in tasks:
            yield task, work(task, report or _ignore)

    def map_prepared(
        self, prepare: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks in their order; nothing is prepared if there are none."""
        work: Callable[[Task], Result] | None = None
        for task in tasks:
            work = work or prepare()
            yield task, work(task)

    def close(self) -> None:
        """Nothing was started."""


def _ignore(value: object) -> None:
    """Report nothing."""
