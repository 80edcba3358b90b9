"""The store: lines are only added, damage costs a line, nothing counts twice."""

import json
import multiprocessing
import os
from dataclasses import replace

import pytest

from accord.errors import DamagedFileWarning, InputError
from accord.experiments.reproduction import Cell, Context, Record, Store

CONTEXT = Context({"method": "spn"}, "raw", {"device": "cpu: test", "commit": "abc"}, "a test")
CELL = Cell("training", "cora*", "spn", "gcn", "authors")


def record(seed=1, **changes):
    values = {"epochs": 200, "recipe": "r", "metrics": {"gnn": {"graph": 0.5}}, "seconds": 2.0, "context": CONTEXT.code}
    return Record(cell=CELL, seed=seed, **{**values, **changes})


def test_records_are_read_back_as_they_were(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    assert store.read() == ([], {})
    mine = [record(1), record(2, block=(0, 31), shortened=True, details={"curve": [1.5, 2]}), record(3, seconds=None)]
    mine[2] = replace(mine[2], cell=Cell("statistics", "cora*", "-"))
    assert store.append(mine, [CONTEXT]) == 3
    found, contexts = store.read()
    assert found == mine and found[1].details == {"curve": [1.5, 2]}
    assert contexts == {CONTEXT.code: CONTEXT}
    line = json.loads((tmp_path / "records.jsonl").read_text().splitlines()[1])["record"]
    assert {"experiment", "data", "method", "encoder", "preset", "seed", "metrics", "seconds"} <= set(line)


def test_numbers_as_keys_are_read_back(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    store.append([record(details={2: 1.0, 10: 2.0})], [CONTEXT])
    assert store.read()[0][0].details == {"2": 1.0, "10": 2.0}


def test_the_same_record_counts_once(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    assert store.append([record(), record(2)], [CONTEXT]) == 2
    size = store.path.stat().st_size
    assert store.append([record(metrics={"gnn": {"graph": 0.9}})], [CONTEXT]) == 0  # as another machine may find it
    assert store.path.stat().st_size == size
    assert store.append([record(epochs=5, shortened=True)], [CONTEXT]) == 1  # kept beside the longer one
    assert len(store.read()[0]) == 3


@pytest.mark.parametrize("kept", [1, 20, -2])
def test_a_process_killed_in_the_middle_of_a_line_costs_that_line(tmp_path, kept):
    store = Store(tmp_path / "records.jsonl")
    store.append([record(1)], [CONTEXT])
    whole = store.path.read_bytes()
    store.append([record(2)], [CONTEXT])
    added = store.path.read_bytes()[len(whole) :]
    store.path.write_bytes(whole + added[:kept])
    with pytest.warns(DamagedFileWarning, match="line 3"):
        assert [found.seed for found in store.read()[0]] == [1]
    store.append([record(3)], [CONTEXT])
    store.append([record(2)], [CONTEXT])
    with pytest.warns(DamagedFileWarning):
        assert [found.seed for found in store.read()[0]] == [1, 3, 2]


def test_an_edited_line_is_left_out(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    store.append([record(1), record(2)], [CONTEXT])
    store.path.write_text(store.path.read_text().replace('"graph":0.5', '"graph":0.6', 1))
    with pytest.warns(DamagedFileWarning):
        assert [found.seed for found in store.read()[0]] == [2]


def test_stores_of_two_machines_are_merged(tmp_path):
    here, there = Store(tmp_path / "here.jsonl"), Store(tmp_path / "there.jsonl")
    other = replace(CONTEXT, provenance={"device": "cuda: other"})
    here.append([record(1), record(2)], [CONTEXT])
    there.append([record(2), record(3, context=other.code)], [CONTEXT, other])
    assert here.merge(there.path) == 1 and here.merge(there.path) == 0
    records, contexts = here.read()
    assert [found.seed for found in records] == [1, 2, 3] and set(contexts) == {CONTEXT.code, other.code}
    with pytest.raises(InputError, match="no such file"):
        here.merge(tmp_path / "none.jsonl")


def write_some(path, first):
    for seed in range(first, first + 10):
        Store(path).append([record(seed)], [CONTEXT])
    os._exit(0)


def test_several_processes_may_write_at_once(tmp_path):
    path = tmp_path / "records.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_some, args=(path, first)) for first in (0, 5, 20)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(found.seed for found in Store(path).read()[0]) == [*range(15), *range(20, 30)]
