"""The study of sequences: what its table takes from its records."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "sequences"


@pytest.fixture(scope="module")
def study():
    folder = ROOT / "benchmarks" / "structures"
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("benchmark_sequences", folder / "sequences.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(folder))
    return module


def made(method, seed, seconds, commit):
    known = {"device": "cpu", "torch": "2", "date": "2026-01-01", "commit": commit}
    tested = {"test": {"token": 0.5, "sentence": 0.25}, "training_seconds": seconds, "fit_seconds": 2 * seconds}
    return {"task": "ewt", "fold": 0, "seed": seed, "method": method, **tested, "provenance": known}


def test_ratios_are_of_one_run_only(study):
    """Seed 1 was measured on a machine twice as slow, but for the SPN."""
    seconds = {"softmax": 1.0, "pytorch-crf": 2.0, "crf": 3.0, "spn": 4.0, "refined": 5.0}
    records = [made(method, 0, own, "a") for method, own in seconds.items()]
    records += [made(method, 1, 2 * own, "b") for method, own in seconds.items() if method != "spn"]
    records += [made("spn", 1, seconds["spn"], "c")]
    table = study.table(records).split("\n\n| measured")[0]
    rows = [row.split(" | ")[-2:] for row in table.splitlines() if row.startswith("| ")]
    assert [float(row[0]) for row in rows[2:]] == [own / 2.0 for own in seconds.values()]
    for record in records:
        record["provenance"] = record["provenance"] | {"commit": record["method"]}
    row = next(row for row in study.table(records).splitlines() if row.startswith("| SPN"))
    assert row.endswith("|  |  |")


def test_the_page_is_the_table_of_the_records(study):
    assert (RESULTS / "README.md").read_text() == study.table(study.read_records(RESULTS))


def test_each_seed_and_fold_was_measured_in_one_run(study):
    runs = {}
    for record in study.read_records(RESULTS):
        runs.setdefault((record["task"], record["fold"], record["seed"]), set()).add(study.run_of(record))
    assert len(runs) == 50 + 5 + 5 and all(len(found) == 1 for found in runs.values())
