"""The engine of a Ray cluster: tasks and actors in other processes, on this machine or on many.

Ray is imported when an engine is made, not with this module.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain, islice
from math import floor
from typing import Any

from accord.distributed.engines._crew import NOTHING, Crew, deaths
from accord.distributed.engines._interface import Engine, Report, Result, Shared, Task, Value
from accord.distributed.engines._worker import RETRIES, PreparedWorker, Stored, do_task, unpack
from accord.errors import OptionError, WorkerError


class RayEngine(Engine):
    """Does tasks on a Ray cluster.

    If the process is connected to a cluster already (`ray.init`), that one is used and left running.

    Args:
        workers: tasks at the same time; None takes as many as the cluster has room for. A worker takes one CPU. Those
            for which there is no room now begin to work when there is.
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
        fitting = count_fitting(nodes, gpus_per_worker)
        if not fitting:
            self.close()
            needed = f" with {gpus_per_worker:g} GPUs. Leave out --gpus-per-worker" if gpus_per_worker else ""
            raise OptionError(
                f"engine ray: no machine of the cluster has room for a worker{needed or '. Start one with a CPU'}, or "
                "use another cluster."
            )
        self.workers = workers or fitting
        self.gpus = gpus_per_worker
        self.has_gpus = gpus_per_worker > 0
        # Workers share the cores. A worker cannot have more than its node has.
        self.threads = max(1, min(cores // min(self.workers, fitting), max(cpus)))

    def share(self, value: Value) -> Shared[Value]:
        """Put a value into the object store; each process fetches it once."""
        return Stored(self._ray.put(value))

    def map(
        self, work: Callable[[Task, Report], Result], tasks: Iterable[Task], report: Report | None = None
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks as Ray tasks, at most `workers` at the same time."""
        shared = self.share(work)
        remote = self._ray.remote(do_task).options(max_retries=RETRIES, **self._resources())
        waiting, running = iter(tasks), dict[Any, Task]()
        try:
            while True:
                while len(running) < self.workers and (task := next(waiting, NOTHING)) is not NOTHING:
                    running[remote.remote(shared, task, self.threads)] = task
                if not running:
                    return
                (reference,), _ = self._ray.wait(list(running), num_returns=1)
                with self._deaths():
                    done = self._ray.get(reference)
                yield running.pop(reference), unpack(done)
        finally:
            for reference in running:
                with suppress(Exception):  # the cluster may be gone
                    self._ray.cancel(reference, force=True)

    def map_prepared(
        self, prepare: Callable[[], Callable[[Task], Result]], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result]]:
        """Do tasks by actors, which are replaced when they die."""
        tasks = iter(tasks)
        first = list(islice(tasks, self.workers))  # a worker that nobody needs is not started
        kind, shared = self._ray.remote(PreparedWorker).options(**self._resources()), self.share(prepare)
        crew = Crew(
            self._ray,
            lambda: kind.remote(self.threads),
            lambda actor, task: actor.do.remote(shared, task),
            len(first),
        )
        try:
            with self._deaths():
                for task, done in crew.do(chain(first, tasks)):
                    yield task, unpack(done)
        finally:
            crew.end()

    def close(self) -> None:
        """Disconnect, and end the cluster if the engine started it."""
        if self._started:
            self._started = False
            self._ray.shutdown()

    def _resources(self) -> dict[str, float]:
        return {"num_cpus": 1, "num_gpus": self.gpus}

    @contextmanager
    def _deaths(self) -> Iterator[None]:
        """An error that says what to do where workers die again and again."""
        try:
            yield
        except deaths(self._ray) as error:
            raise WorkerError(
                f"engine ray: a worker died {RETRIES + 1} times at the same task ({str(error).splitlines()[0][:200]}). "
                "Give each worker more memory (fewer --workers), or smaller tasks. What has finished is kept."
            ) from error


def count_fitting(nodes: Sequence[Mapping[str, float]], gpus: float) -> int:
    """How many workers nodes have room for, by their resources; a share of a GPU is always of one GPU."""
    each = [
        (own.get("CPU", 0.0), floor(own.get("GPU", 0.0)) * floor(1 / gpus) if 0 < gpus < 1 else own.get("GPU", 0.0))
        for own in nodes
    ]
    return sum(floor(min(cpus, shares / max(gpus, 1.0) if gpus else cpus)) for cpus, shares in each)


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
