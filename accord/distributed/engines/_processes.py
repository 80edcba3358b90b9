"""The engine of several processes on this machine. It needs no other package, and its processes share the GPU."""

import os
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import torch

from accord.distributed.engines._interface import Engine, Report, Result, Shared, Task, Value
from accord.distributed.engines._worker import RETRIES, Done, caught, unpack
from accord.errors import OptionError, WorkerError

NOTHING: Any = object()
_values: list[Any] = []  # in a worker: the shared values, in the order in which they were shared
_prepared: dict[int, Callable[[Any], Any]] = {}  # in a worker: by the number of the call of `map_prepared`


@dataclass(frozen=True, eq=False)
class Sent(Shared[Value]):
    """A value that is sent to each process once."""

    number: int

    def get(self) -> Value:
        """The value, in a worker."""
        value: Value = _values[self.number]
        return value


class ProcessEngine(Engine):
    """Does tasks in other processes of this machine, which share its cores and its GPU.

    Work and tasks must be importable: workers are fresh processes.

    Args:
        workers: processes.
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise OptionError(f"engine local: workers is {workers}; a positive whole number is needed.")
        self.workers = workers
        self.threads = max(1, (os.cpu_count() or 1) // workers)
        self._values: list[bytes] = []
        self._processes: list[_Process] = []
        self._calls = 0

    @property
    def has_gpus(self) -> bool:  # type: ignore[override]  # asked of torch only when needed
        """Whether torch finds a GPU, which all workers then share."""
        return torch.cuda.is_available()

    def share(self, value: Value) -> Shared[Value]:
        """Keep a value for the workers; each gets it with its next task."""
        self._values.append(pickle.dumps(value))
        return Sent(len(self._values) - 1)

    def map(
        self, work: Callable[[Task, Report], Result], tasks: Iterable[Task], report: Report | None = None
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks in whichever process is free."""
        return self._collect(_Plain(work), tasks)

    def map_prepared(
        self, prepare: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks in whichever process is free; each process prepares before its first one."""
        self._calls += 1
        return self._collect(_Prepared(self._calls, prepare), tasks)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.end()
        self._processes.clear()

    def _collect(self, work: "_Plain | _Prepared", tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
        """Give a task to each free process, and return tasks with results as they finish."""
        waiting, running = iter(tasks), dict[Connection, tuple[_Process, Task, int]]()
        free = [process for process in self._processes if not process.ended]
        try:
            while True:
                while len(running) < self.workers and (task := next(waiting, NOTHING)) is not NOTHING:
                    process = free.pop() if free else self._start()
                    self._give(process, work, task)
                    running[process.connection] = (process, task, 0)
                if not running:
                    return
                for connection in wait(list(running)):
                    assert isinstance(connection, Connection)
                    process, task, deaths = running.pop(connection)
                    answer = process.answer()
                    if answer is not None:
                        free.append(process)
                        yield task, unpack(answer)
                        continue
                    if deaths == RETRIES:
                        raise WorkerError(
                            f"engine local: a process died {RETRIES + 1} times at the same task. Give each one more "
                            "memory (fewer --workers), or smaller tasks. What has finished is kept."
                        )
                    process = self._start()
                    self._give(process, work, task)
                    running[process.connection] = (process, task, deaths + 1)
        finally:
            for process, _, _ in running.values():  # in the middle of a task that nobody waits for any more
                process.end()
            self._processes = [process for process in self._processes if not process.ended]

    def _start(self) -> "_Process":
        self._processes.append(_Process(self.threads))
        return self._processes[-1]

    def _give(self, process: "_Process", work: "_Plain | _Prepared", task: Any) -> None:
        with suppress(OSError):  # a process that has died shows when its answer is awaited
            while process.known < len(self._values):
                process.connection.send_bytes(self._values[process.known])
                process.known += 1
            process.connection.send_bytes(pickle.dumps(_Given(work, task)))


class _Process:
    """A worker, seen from the process of the engine."""

    def __init__(self, threads: int) -> None:
        context = get_context("spawn")  # a fork would share CUDA's state and the threads' locks
        self.connection, other = context.Pipe()
        self.known = 0  # shared values that it has
        self.ended = False
        self._process = context.Process(target=_serve, args=(other, threads), daemon=True)
        self._process.start()
        other.close()  # so that the end of the process ends the connection

    def answer(self) -> Done[Any] | None:
        """What came back, or None if the process has died."""
        try:
            answer: Done[Any] = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            self.end()
            return None
        return answer

    def end(self) -> None:
        """End the process, whatever it does."""
        self.ended = True
        self._process.kill()
        self._process.join()
        self.connection.close()


@dataclass(frozen=True)
class _Given:
    """What a worker is asked to do."""

    work: "_Plain | _Prepared"
    task: Any


@dataclass(frozen=True)
class _Plain:
    """Work without a preparation."""

    work: Callable[[Any, Report], Any]

    def __call__(self, task: Any) -> Any:
        return self.work(task, _ignore)


@dataclass(frozen=True)
class _Prepared:
    """Work that each process prepares once."""

    number: int
    prepare: Callable[[], Callable[[Any], Any]]

    def __call__(self, task: Any) -> Any:
        if self.number not in _prepared:
            _prepared.clear()  # of an earlier call
            _prepared[self.number] = self.prepare()
        return _prepared[self.number](task)


def _serve(connection: Connection, threads: int) -> None:
    """The loop of a worker: shared values are kept, tasks are done and answered."""
    torch.set_num_threads(threads)
    with suppress(EOFError, KeyboardInterrupt, BrokenPipeError):  # the engine has ended
        while True:
            received = pickle.loads(connection.recv_bytes())
            if isinstance(received, _Given):
                connection.send_bytes(_answer(received))
            else:
                _values.append(received)


def _answer(given: _Given) -> bytes:
    try:
        return pickle.dumps(caught(lambda: given.work(given.task)))
    except Exception as error:  # a defect: its traceback would stay in this process
        failed = RuntimeError(f"{type(error).__name__}: {error}\n\nIn a worker:\n{traceback.format_exc()}")
        return pickle.dumps(Done(None, failed, []))


def _ignore(value: object) -> None:
    """Report nothing: the process that would show it is another one."""
