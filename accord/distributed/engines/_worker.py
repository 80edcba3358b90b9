"""What runs inside a worker, and how its answers are read. A Ray worker imports this module and what its tasks need."""

import warnings
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic

import torch

from accord.distributed.engines._interface import Report, Result, Shared, Task, Value
from accord.errors import AccordError

OWN_WARNINGS = "accord.errors"  # the module of warnings that are passed on
RETRIES = 3  # of a task whose worker died; more often, the task itself is probably what kills it
FETCHED = 8  # shared values that a process keeps
_fetched: OrderedDict[bytes, Any] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Stored(Shared[Value]):
    """A value in Ray's object store."""

    reference: Any

    def get(self) -> Value:
        """The value, fetched once by each process. What it computes and caches stays with the process."""
        key = self.reference.binary()
        if key not in _fetched:
            _fetched[key] = import_module("ray").get(self.reference)
            while len(_fetched) > FETCHED:
                _fetched.popitem(last=False)
        _fetched.move_to_end(key)
        value: Value = _fetched[key]
        return value


@dataclass(frozen=True)
class Done(Generic[Result]):
    """What a task gave, for the process of the engine: its result or its error, and Accord's warnings."""

    result: Result | None
    error: Exception | None
    warnings: list[tuple[type[Warning], str]]


def do_task(work: Shared[Callable[[Task, Report], Result]], task: Task, threads: int) -> Done[Result]:
    """Do one task, as a Ray task."""
    torch.set_num_threads(threads)
    return caught(lambda: work.get()(task, _ignore))


class PreparedWorker(Generic[Task, Result]):
    """Prepares once and does many tasks, as a Ray actor.

    Args:
        threads: of torch.
    """

    def __init__(self, threads: int) -> None:
        self.work: Callable[[Task], Result] | None = None
        torch.set_num_threads(threads)

    def ready(self) -> None:
        """Answers as soon as the actor is there."""

    def do(self, prepare: Shared[Callable[[], Callable[[Task], Result]]], task: Task) -> Done[Result]:
        """Do one task. The first one prepares: an error there is an error of a task, which the engine raises."""
        return caught(lambda: self._do(prepare, task))

    def _do(self, prepare: Shared[Callable[[], Callable[[Task], Result]]], task: Task) -> Result:
        if self.work is None:
            self.work = prepare.get()()
        return self.work(task)


def caught(call: Callable[[], Result]) -> Done[Result]:
    """Call, and keep expected errors and Accord's warnings. Other errors are defects, which are raised."""
    result: Result | None = None
    failed: AccordError | OSError | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except (AccordError, OSError) as error:
            failed = error
    own = [(one.category, str(one.message)) for one in caught if one.category.__module__ == OWN_WARNINGS]
    return Done(result, failed, own)


def unpack(done: Done[Result]) -> Any:
    """The result of a task; its error as the task raised it, and its warnings once more."""
    for category, message in done.warnings:
        warnings.warn(message, category, stacklevel=4)
    if done.error is not None:
        raise done.error
    return done.result


def _ignore(value: object) -> None:
    """Report nothing: the process that would show it is another one."""
