"""The engine of a Ray cluster: tasks and actors in other processes, on this machine or on many.

Ray is imported when an engine is made, not with this module.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from math import floor
from typing import Any

from accord.distributed.engines._interface import Engine, Report, Result, Shared, Task, Value
from accord.distributed.engines._worker import RETRIES, PreparedWorker, Stored, do_task, unpack
from accord.errors import OptionError, WorkerError

QUEUED = 2  # tasks of a prepared worker: one that it does, and one that waits, so that it never idles
NOTHING: Any = object()


class RayEngine(Engine):
    """Does tasks on a Ray cluster.

    If the process is connected to a cluster already (`ray.init`), that one is used and left running.

    Args:
        workers: tasks at the same time; None takes one for each CPU of the cluster.
        address: of a running cluster, such as "auto" or "ray://head:10001"; None starts one on this machine. Its nodes
            need this version of Accord, the data, and the folders of runs and results under the same paths.
        gpus_per_worker: GPUs that each worker has, 0.25 for a quarter of one; 0 for none.
    """

    def __init__(self, workers: int | None = None, address: str | None = None, gpus_per_worker: float = 0.0) -> None:
        if workers is not None and workers < 1:
            raise OptionError(f"engine ray: workers is {workers}; a positive whole number is needed.")
        if not 0 <= gpus_per_worker < float("inf") or (gpus_per_worker > 1 and gpus_per_worker % 1):
            raise OptionError(f"engine ray: {gpus_per_worker} GPUs a worker is not possible. Give 0.25, 1 or 2.")
        self._ray = import_ray()
        self._started = not self._ray.is_initialized()
        if self._started:
            _connect(self._ray, workers, address)
        elif address is not None:
            raise OptionError("engine ray: this process is connected to a cluster already. Leave the address out.")
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        cpus = [floor(own.get("CPU", 0)) for own in nodes]
        cores = sum(cpus) if address is not None else min(sum(cpus), os.cpu_count() or 1)
        self.workers = workers or max(1, sum(cpus))
        self.gpus = gpus_per_worker
        self.has_gpus = gpus_per_worker > 0
        # Workers share the cores. A worker cannot have more than its node has.
        self.threads = max(1, min(cores // self.workers, max(cpus, default=1)))
        available = sum(own.get("GPU", 0.0) for own in nodes)
        if gpus_per_worker > available:
            self.close()
            raise OptionError(
                f"engine ray: {gpus_per_worker:g} GPUs a worker are asked for, the cluster has {available:g}. Leave "
                "out --gpus-per-worker, or use another cluster."
            )

    def share(self, value: Value) -> Shared[Value]:
        """Put a value into the object store; each process fetches it once."""
        return Stored(self._ray.put(value))

    def map(
        self, work: Callable[[Task, Report], Result], tasks: Iterable[Task], report: Report | None = None
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks as Ray tasks, at most `workers` at the same time."""
        shared = self.share(work)
        remote = self._ray.remote(do_task).options(max_retries=RETRIES, **self._resources())
        for _, task, result in self._collect(
            lambda task: remote.remote(shared, task, self.threads), tasks, self.workers, {}
        ):
            yield task, result

    def map_prepared(
        self, prepare: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks by actors, which Ray replaces when they die."""
        kind = self._ray.remote(PreparedWorker)
        options = {"max_restarts": -1, "max_task_retries": RETRIES, **self._resources()}
        shared = self.share(prepare)
        actors = [kind.options(**options).remote(self.threads) for _ in range(self.workers)]
        running: dict[Any, Task] = {}
        actor_of: dict[Any, int] = {}  # by the reference of a task

        def submit(task: Task) -> Any:
            waiting = Counter(actor_of[reference] for reference in running)
            free = min(range(len(actors)), key=lambda actor: waiting[actor])
            reference = actors[free].do.remote(shared, task)
            actor_of[reference] = free
            return reference

        try:
            for reference, task, result in self._collect(submit, tasks, QUEUED * self.workers, running):
                del actor_of[reference]
                yield task, result
        finally:
            for actor in actors:
                with suppress(Exception):  # the cluster may be gone
                    self._ray.kill(actor)

    def close(self) -> None:
        """Disconnect, and end the cluster if the engine started it."""
        if self._started:
            self._started = False
            self._ray.shutdown()

    def _resources(self) -> dict[str, float]:
        return {"num_cpus": 1, "num_gpus": self.gpus}

    def _collect(
        self, submit: Callable[[Task], Any], tasks: Iterable[Task], limit: int, running: dict[Any, Task]
    ) -> Iterator[tuple[Any, Task, Any]]:
        """Keep so many tasks running, and return their references, tasks and results as they finish."""
        waiting = iter(tasks)
        try:
            while True:
                while len(running) < limit and (task := next(waiting, NOTHING)) is not NOTHING:
                    running[submit(task)] = task
                if not running:
                    return
                (reference,), _ = self._ray.wait(list(running), num_returns=1)
                with self._deaths():
                    done = self._ray.get(reference)
                yield reference, running.pop(reference), unpack(done)
        finally:
            for reference in running:
                with suppress(Exception):  # tasks of actors end with them; the cluster may be gone
                    self._ray.cancel(reference, force=True)

    @contextmanager
    def _deaths(self) -> Iterator[None]:
        """An error that says what to do where workers die again and again."""
        errors = self._ray.exceptions
        try:
            yield
        except (errors.WorkerCrashedError, errors.RayActorError, errors.OutOfMemoryError) as error:
            raise WorkerError(
                f"engine ray: a worker died {RETRIES + 1} times at the same task ({str(error).splitlines()[0][:200]}). "
                "Give each worker more memory (fewer --workers), or smaller tasks. What has finished is kept."
            ) from error


def import_ray() -> Any:
    """The package ray; where it is missing, the error says how to install it."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise OptionError(
            "engine ray: the package ray is not installed. Install it (pip install 'accord[ray]'), or use the local "
            "engine."
        ) from error


def _connect(ray: Any, workers: int | None, address: str | None) -> None:
    """Connect to a running cluster, or start one on this machine; nothing is reported to Ray's makers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        cores = max(os.cpu_count() or 1, workers or 1)  # more workers than cores take turns
        # Without an address Ray would look for a cluster that somebody else has started here.
        ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise OptionError(
            f"engine ray: no cluster answers at {address} ({str(error).splitlines()[0][:200]}). Start one with `ray "
            "start --head`, or leave out --address to use this machine."
        ) from error
