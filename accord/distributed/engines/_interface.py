"""The interface of engines: values that are shared once, and tasks whose results are returned as they finish.

What is done with the results (stores, files, reports, budgets) stays with the caller, in one process. So a search or a
reproduction has a single writer, whatever the engine.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Task = TypeVar("Task")
Result = TypeVar("Result")
Report = Callable[[Any], None]


class Shared(ABC, Generic[Value]):
    """A value that many tasks read; it travels to each process once, not with every task."""

    @abstractmethod
    def get(self) -> Value:
        """The value; tasks must not change it."""


class Engine(ABC):
    """Does independent tasks. Use it as a context manager, so that what it started ends with it.

    Tasks are taken from their iterable only when a worker is free. A generator can therefore decide at that moment
    whether there is still time for another task, knowing all results that were returned before.

    Attributes:
        workers: how many tasks may run at the same time.
        has_gpus: whether tasks find a GPU.
    """

    workers: int
    has_gpus: bool

    @abstractmethod
    def share(self, value: Value) -> Shared[Value]:
        """Make a value available to all workers."""

    @abstractmethod
    def map(
        self, work: Callable[[Task, Report], Result], tasks: Iterable[Task], report: Report | None = None
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks and return each with its result, in the order in which they finish.

        An error of a task is raised here. A task may be repeated if its worker dies, so it must have the same effect
        when it is done twice.

        Args:
            work: a plain function of a task and a callback.
            tasks: plain values.
            report: receives what tasks pass to the callback. Engines with other processes ignore it.
        """

    @abstractmethod
    def map_prepared(
        self, prepare: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Like `map`, for work that needs something costly first, such as a model that must be loaded.

        Args:
            prepare: called once in each worker, and again in a worker that replaces a dead one; returns the work.
            tasks: plain values.
        """

    @abstractmethod
    def close(self) -> None:
        """End what the engine started; results that were not returned yet are lost."""

    def __enter__(self) -> "Engine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
