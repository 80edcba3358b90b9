"""The runner: within a budget, resumed after a kill, and each task a plain function of plain values."""

import pickle
from dataclasses import replace

import pytest
import torch

from accord.datasets import load_benchmark
from accord.errors import OptionError
from accord.experiments.reproduction import (
    Asked,
    Cell,
    Store,
    Task,
    _ablation,
    _runner,
    _studies,
    _training,
    compute,
    parse_budget,
    run_missing,
)
from accord.experiments.reproduction._training import Place

pytestmark = pytest.mark.data("planetoid_citeseer.npz", "ppi_recon.npz")
CELL = Cell("training", "citeseer*", "spn", "gcn", "authors")
CPU = Place("cpu")


def small_benchmark(name, features):
    bench = load_benchmark(name, features=features)
    sizes = {"train": 12, "val": 8, "test": 8} if bench.num_tasks == 1 else {"train": 1, "val": 1, "test": 1}
    return replace(bench, **{split: getattr(bench, split)[:count] for split, count in sizes.items()})


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A few graphs, and a small ablation."""
    for module in (_training, _studies):
        monkeypatch.setattr(module, "benchmark", small_benchmark)
    monkeypatch.setattr(_ablation, "NORMALISERS", ("node", "own^0.1", "sinkhorn"))
    monkeypatch.setattr(_ablation, "SHARPNESS", (0.2, 1.0))


def test_budgets_are_parsed():
    assert [parse_budget(text) for text in ("90s", "25m", "1.5h", "0s")] == [90, 1500, 5400, 0]
    for bad in ("25", "m", "-1m", "soon", "", "nanm"):
        with pytest.raises(OptionError, match="25m"):
            parse_budget(bad)


def test_a_task_is_a_plain_function_of_plain_values():
    """As a worker process would call it: both ends survive pickling, and a seed does not depend on its companions."""
    function, task = pickle.loads(pickle.dumps((compute, Task(CELL, (1, 2), None, 2))))
    records, contexts = pickle.loads(pickle.dumps(function(task, CPU)))
    trained = [record for record in records if record.cell == CELL]
    assert [record.seed for record in trained] == [1, 2] and len(records) == 4
    assert set(trained[0].metrics) == {"gnn", "spn", "sum"}
    measures = {"graph", "node", "node_unseen", "graph_free"}
    assert measures <= set(trained[0].metrics["gnn"])
    assert contexts[0].code == trained[0].context and contexts[0].provenance["device"].startswith("cpu")
    alone, _ = compute(Task(CELL, (2,), None, 2), CPU)
    assert alone[0].metrics == trained[1].metrics and trained[1].shortened and trained[1].epochs == 2


def test_blocks_of_labels_are_counted_and_do_not_depend_on_each_other():
    cell = Cell("training", "ppi-1", "spn", "gcn", "authors")
    both, first, second = (compute(Task(cell, (1,), block, 2), CPU)[0][0] for block in ((3, 5), (3, 4), (4, 5)))
    for name, value in both.metrics["gnn"].items():
        assert value == first.metrics["gnn"][name] + second.metrics["gnn"][name]
    assert both.block == (3, 5)


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    """Killed in the middle of a task: what is stored stays, and the checkpoint of the rest is resumed."""
    asked = Asked([CELL, replace(CELL, encoder="sage")], (1,), 40)
    epochs, jobs = [], []

    def stop(job, row):
        jobs.append(job) if row is None else epochs.append(row["epoch"])
        if len(jobs) == 2 and row is not None and row["epoch"] >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_missing(tmp_path, asked, 600, "cpu", stop)
    records, _ = Store(tmp_path / "records.jsonl").read()
    assert {record.cell.encoder for record in records} == {"gcn"}
    again = []
    progress = run_missing(tmp_path, asked, 600, "cpu", lambda job, row: again.append((job, row)))
    assert (progress.finished, progress.left) == (1, 0)
    resumed = [row["epoch"] for _, row in again if row is not None]
    assert resumed[0] >= 20 and resumed[-1] == 40  # not from the start
    assert not list((tmp_path / "unfinished").iterdir())
    assert run_missing(tmp_path, asked, 600, "cpu").finished == 0
    assert len({r.identity for r in Store(tmp_path / "records.jsonl").read()[0]}) == 4


def test_the_budget_ends_a_run_in_the_middle_of_a_task(tmp_path, monkeypatch):
    clock = iter(range(0, 10**6, 10))
    monkeypatch.setattr(_runner.time, "monotonic", lambda: next(clock))
    progress = run_missing(tmp_path, Asked([CELL], (1, 2), 40), 35, "cpu")
    assert (progress.finished, progress.left) == (0, 1)
    assert run_missing(tmp_path, Asked([CELL], (1, 2), 2), 0, "cpu").finished == 0  # nothing is begun


def test_data_that_are_not_there_are_named_and_the_rest_is_run(tmp_path, monkeypatch):
    monkeypatch.setenv("ACCORD_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(_training, "benchmark", lambda name, features: load_benchmark(name, features=features))
    cells = [Cell("training", "citation-domains", "spn", encoder, "authors") for encoder in ("gcn", "sage")]
    progress = run_missing(tmp_path / "out", Asked(cells, (1,), 1), 600, "cpu")
    assert (progress.finished, progress.left, progress.absent) == (0, 2, ("citation-domains",))


def test_an_error_in_one_task_does_not_end_the_run(tmp_path, monkeypatch):
    def breaks(task, place):
        if task.cell.encoder == "gcn":
            raise ValueError("made to fail")
        return compute(task, place)

    monkeypatch.setattr(_runner, "compute", breaks)
    told = []
    asked = Asked([CELL, replace(CELL, encoder="sage")], (1,), 1)
    progress = run_missing(tmp_path, asked, 600, "cpu", lambda job, row: told.append(job))
    assert (progress.finished, progress.left) == (1, 1)
    assert progress.failed == (f"{CELL.key} seed 1: ValueError: made to fail",)
    assert any("Traceback" in job and "in breaks" in job for job in told)
    assert {record.cell.encoder for record in Store(tmp_path / "records.jsonl").read()[0]} == {"sage"}


def test_times_that_cannot_be_told_apart_are_left_for_another_run(tmp_path, monkeypatch):
    clock = iter(range(10**6))  # each time is shorter than the one before, as if the first run had been slowed down
    monkeypatch.setattr(_studies.time, "perf_counter", lambda: next(clock) ** 0.5)
    cell = Cell("run-time", "citeseer*", "spn", "gcn", "authors")
    progress = run_missing(tmp_path, Asked([cell], None, 1), 600, "cpu")
    assert (progress.finished, progress.left) == (0, 1) and not Store(tmp_path / "records.jsonl").read()[0]


def test_the_budget_also_ends_an_ablation_and_the_training_is_not_repeated(tmp_path, monkeypatch):
    asked, epochs = Asked([CELL], (1,), 10), []
    make_field, calls = _ablation.make_field, []

    with monkeypatch.context() as patch:

        def last(*arguments):
            calls.append(1)
            patch.setattr(_runner.time, "monotonic", lambda: 10**9)  # the time is over
            return make_field(*arguments)

        patch.setattr(_ablation, "make_field", last)
        assert run_missing(tmp_path, asked, 600, "cpu").finished == 0 and len(calls) == 1
    follow = lambda job, row: epochs.append(row["epoch"]) if row is not None else None  # noqa: E731
    assert run_missing(tmp_path, asked, 600, "cpu", follow).finished == 1
    assert set(epochs) <= {10.0}  # from the checkpoint at its end


def test_a_task_that_finds_no_memory_is_left_for_another_run(tmp_path, monkeypatch):
    compute = _runner.compute

    def crowded(task, place):
        if task.seeds == (1,):
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return compute(task, place)

    monkeypatch.setattr(_runner, "compute", crowded)
    told = []
    asked = Asked([CELL, replace(CELL, experiment="overlap", method="-", encoder="-", preset="-")], (1,), 2)
    progress = run_missing(tmp_path, asked, 600, "cpu", lambda job, row: told.append(job))
    assert (progress.finished, progress.left) == (0, 2) and any("other tasks took the memory" in job for job in told)
    assert not progress.failed
    monkeypatch.setattr(_runner, "compute", compute)
    assert run_missing(tmp_path, asked, 600, "cpu").finished == 2
    monkeypatch.setattr(_runner, "compute", lambda task, place: [][1])
    progress = run_missing(tmp_path / "other", asked, 600, "cpu")  # a defect is not taken for it
    assert len(progress.failed) == 2 and all("IndexError" in text for text in progress.failed)
