"""Every engine gives the result of every task once, with its errors and warnings, and survives workers that die."""

import os
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from threading import Thread

import pytest

from accord.distributed.engines import LocalEngine, RayEngine, open_engine
from accord.distributed.engines._ray import count_fitting
from accord.errors import ConvergenceWarning, GraphError, OptionError, WorkerError


@pytest.fixture(params=["local", 2, 4])
def engine(request):
    if request.param == "local":
        yield LocalEngine()
        return
    request.getfixturevalue("ray_cluster")
    with RayEngine(request.param) as opened:
        yield opened


# Workers cannot import this file: what they do is defined inside functions, which travel as they are.
def test_every_task_gives_its_result_once(engine):
    factor = engine.share(10)

    def times(task, report):
        return factor.get() * task

    def prepare():
        return lambda task: factor.get() * task

    wanted = [(task, 10 * task) for task in range(9)]
    assert sorted(engine.map(times, iter(range(9)))) == wanted
    assert sorted(engine.map_prepared(prepare, iter(range(9)))) == wanted
    assert list(engine.map(times, [])) == [] and list(engine.map_prepared(prepare, [])) == []


def test_tasks_are_taken_only_when_a_worker_is_free(engine):
    taken, seen = [], []

    def tasks():
        for task in range(12):
            taken.append(task)
            yield task

    for task, _ in engine.map(lambda task, report: None, tasks()):
        seen.append(task)
        assert len(taken) - len(seen) < engine.workers
    assert sorted(seen) == list(range(12))


def test_errors_and_warnings_of_tasks_are_those_of_the_caller(engine):
    def work(task, report=None):
        warnings.warn(f"task {task} is doubtful", ConvergenceWarning, stacklevel=1)
        if task == 1:
            raise GraphError("task 1: has no nodes.")
        return task

    for mapped in (engine.map(work, [0]), engine.map_prepared(lambda: work, [0])):
        with pytest.warns(ConvergenceWarning, match="task 0 is doubtful"):
            assert list(mapped) == [(0, 0)]
    for mapped in (engine.map(work, [1]), engine.map_prepared(lambda: work, [1])):
        with pytest.warns(ConvergenceWarning), pytest.raises(GraphError, match="^task 1: has no nodes.$"):
            list(mapped)


def test_a_worker_that_dies_is_replaced(ray_cluster, tmp_path):
    def work(task, report=None):
        kills = tmp_path / f"killed-{task}"
        if task == 3 and not kills.exists():
            kills.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return os.getpid()

    def prepare():
        (tmp_path / f"prepared-{os.getpid()}").touch()
        return work

    with RayEngine(2) as engine:
        assert sorted(task for task, _ in engine.map(work, range(8))) == list(range(8))
    assert (tmp_path / "killed-3").exists()
    (tmp_path / "killed-3").unlink()
    with RayEngine(1) as engine:
        done = list(engine.map_prepared(prepare, range(8)))
    assert sorted(task for task, _ in done) == list(range(8)) and (tmp_path / "killed-3").exists()
    prepared = {int(path.name.split("-")[1]) for path in tmp_path.glob("prepared-*")}
    assert {worker for _, worker in done} == prepared and len(prepared) == 2  # the replacement prepared too


def within(seconds, call):
    """What a call returns; one that takes longer fails, where a task that nobody does would wait for ever."""
    found = []
    thread = Thread(target=lambda: found.append(call()), daemon=True)  # signals do not interrupt Ray
    thread.start()
    thread.join(seconds)
    assert found, f"not done within {seconds} seconds"
    return found[0]


@contextmanager
def others_take(ray, cpus):
    """CPUs that another job has."""
    held = ray.util.placement_group([{"CPU": cpus}])
    ray.get(held.ready())
    try:
        yield
    finally:
        ray.util.remove_placement_group(held)


def test_workers_that_find_no_room_get_no_tasks(ray_cluster):
    def prepare():
        import ray

        shares = ray.get_runtime_context().get_assigned_resources()
        return lambda task: (os.getpid(), shares.get("GPU", 0.0))

    with others_take(ray_cluster, 3), RayEngine(2) as engine:
        done = within(90, lambda: dict(engine.map_prepared(prepare, range(8))))
    assert sorted(done) == list(range(8)) and len({worker for worker, _ in done.values()}) == 1
    with RayEngine(3, gpus_per_worker=0.5) as engine:
        done = within(90, lambda: dict(engine.map_prepared(prepare, range(8))))
    assert sorted(done) == list(range(8)) and {share for _, share in done.values()} == {0.5}
    assert 1 <= len({worker for worker, _ in done.values()}) <= 2


def test_there_are_as_many_workers_as_the_cluster_has_room_for(ray_cluster):
    for gpus, workers in ((0.0, 4), (0.5, 2), (0.3, 3), (1.0, 1)):
        with RayEngine(gpus_per_worker=gpus) as engine:
            assert engine.workers == workers
    assert count_fitting([{"CPU": 8.0, "GPU": 2.0}, {"CPU": 1.0, "GPU": 4.0}, {"CPU": 16.0}], 0.25) == 8 + 1
    assert count_fitting([{"CPU": 8.0, "GPU": 2.0}, {"CPU": 8.0, "GPU": 1.0}], 2.0) == 1
    assert count_fitting([{"CPU": 0.0}, {"CPU": 3.5}], 0.0) == 3 and count_fitting([], 0.0) == 0


@pytest.mark.matrix
def test_a_task_that_always_kills_its_worker_is_given_up(ray_cluster):
    def kill(task):
        os.kill(os.getpid(), signal.SIGKILL)

    with RayEngine(2) as engine:
        with pytest.raises(WorkerError, match="a worker died 4 times at the same task.*fewer --workers"):
            list(engine.map_prepared(lambda: kill, [0]))
        assert list(engine.map(lambda task, report: task, [7])) == [(7, 7)]


def test_threads_are_divided_among_workers(ray_cluster):
    def count(task, report):
        import torch

        return torch.get_num_threads()

    with RayEngine(4) as engine:
        ((_, threads),) = engine.map(count, [0])
    assert threads == engine.threads <= max(1, (os.cpu_count() or 1) // 4)


def test_options_that_do_not_fit_are_refused(ray_cluster, monkeypatch):
    for arguments, said in [
        (("dask",), "Choose local or ray"),
        (("local", 2, "auto", 0.5), "--address, --gpus-per-worker is for --engine ray"),
        (("ray", 0), "workers is 0"),
        (("ray", 1, None, 1.5), "1.5 GPUs a worker is not possible"),
        (("ray", 1, None, float("nan")), "nan GPUs a worker is not possible"),
        (("ray", 1, None, 64.0), "no machine of the cluster has room for a worker with 64 GPUs. Leave out"),
        (("ray", 1, "auto"), "connected to a cluster already"),
    ]:
        with pytest.raises(OptionError, match=said):
            open_engine(*arguments)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OptionError, match=r"not installed.*pip install 'accord\[ray\]'"):
        open_engine("ray")


def test_without_ray_nothing_of_it_is_imported():
    code = (
        "import sys, accord, accord.app.cli, accord.distributed.engines, accord.tuning\n"
        "print([name for name in ('ray', 'pymetis') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
