"""Processes of this machine give every result once, with errors and warnings, and are replaced if they die."""

import multiprocessing
import os
from functools import partial

import pytest
from support import engine_work as work

from accord.distributed.engines import LocalEngine, ProcessEngine, open_engine
from accord.errors import ConvergenceWarning, GraphError, OptionError, WorkerError


@pytest.fixture(scope="module")
def engine():
    with ProcessEngine(2) as opened:
        yield opened


def test_every_task_gives_its_result_once(engine, tmp_path):
    factor = engine.share(10)
    wanted = [(task, 10 * task) for task in range(9)]
    assert sorted(engine.map(partial(work.times, factor), iter(range(9)))) == wanted
    later = engine.share(7)  # a value that is shared while processes are running
    done = list(engine.map_prepared(partial(work.prepare_times, later, tmp_path), iter(range(9))))
    assert sorted((task, product) for task, (product, _) in done) == [(task, 7 * task) for task in range(9)]
    assert {f"prepared-{process}" for _, (_, process) in done} <= {path.name for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) <= engine.workers
    assert list(engine.map(partial(work.times, factor), [])) == []


def test_tasks_are_taken_only_when_a_process_is_free(engine):
    taken, seen = [], []
    factor = engine.share(1)

    def tasks():
        for task in range(12):
            taken.append(task)
            yield task

    for task, _ in engine.map(partial(work.times, factor), tasks()):
        seen.append(task)
        assert len(taken) - len(seen) < engine.workers
    assert sorted(seen) == list(range(12))


def test_errors_and_warnings_of_tasks_are_those_of_the_caller(engine):
    with pytest.warns(ConvergenceWarning, match="task 0 is doubtful"):
        assert list(engine.map(work.doubtful, [0])) == [(0, 0)]
    with pytest.warns(ConvergenceWarning), pytest.raises(GraphError, match="^task 1: has no nodes.$"):
        list(engine.map(work.doubtful, [1]))
    with pytest.raises(RuntimeError, match=r"KeyError(?s:.*)in broken"):  # with the traceback of the worker
        list(engine.map(work.broken, [0]))
    assert list(engine.map(partial(work.times, engine.share(2)), [4])) == [(4, 8)]  # and the engine goes on


def test_a_process_that_dies_is_replaced(tmp_path):
    with ProcessEngine(2) as engine:
        done = list(engine.map(partial(work.die_once, tmp_path), range(8)))
        assert sorted(done) == [(task, task) for task in range(8)] and (tmp_path / "killed-3").exists()
        with pytest.raises(WorkerError, match="a process died 4 times at the same task.*fewer --workers"):
            list(engine.map(work.die, [0]))
        assert list(engine.map(partial(work.times, engine.share(1)), [7])) == [(7, 7)]


def test_threads_are_divided_among_processes(engine):
    ((_, threads),) = engine.map(work.threads, [0])
    assert threads == engine.threads == max(1, (os.cpu_count() or 1) // 2)


def test_no_process_is_left_behind():
    before = set(multiprocessing.active_children())
    with ProcessEngine(2) as engine:
        tasks = engine.map(partial(work.times, engine.share(1)), iter(range(100)))
        next(tasks)
        assert set(multiprocessing.active_children()) - before
    assert not set(multiprocessing.active_children()) - before


def test_the_local_engine_takes_workers():
    with open_engine("local") as one, open_engine("local", 3) as many:
        assert isinstance(one, LocalEngine) and isinstance(many, ProcessEngine) and many.workers == 3
    with pytest.raises(OptionError, match="workers is 0"):
        open_engine("local", 0)
