"""`accord bench inference --linear`: growth of time, and peak memory."""

import io
import json

import pytest
import torch
from rich.console import Console

from accord.bench.inference import _machine as machine
from accord.bench.inference import _timing as timing
from accord.bench.inference._growth import exponent, measure_growth
from accord.bench.inference._peak_memory import measure_peak_memory, release_freed_memory, resident_bytes
from accord.bench.inference._timing import BenchOptions
from accord.bench.inference._workloads import growth_workload


def test_the_exponent_is_the_slope_of_the_logarithms():
    rows = [{"edges": edges, "sweep": 3e-9 * edges**1.5} for edges in (10, 100, 1000)]
    assert exponent(rows) == pytest.approx(1.5)
    assert exponent(rows[:1]) == 1.0


def test_growth_is_measured_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "LEAST_SECONDS", 1e-3)
    monkeypatch.setattr(timing, "COPYING_SECONDS", 1e-3)
    monkeypatch.setattr(timing, "MEMORY_BYTES", {"cpu": 2**20})
    console = Console(file=io.StringIO())
    shown = measure_growth(BenchOptions(repeats=1, threads=1), tmp_path, console, sizes=(1000, 3000))
    results = json.loads((tmp_path / "linear.json").read_text())
    assert results["finished"] and [row["edges"] for row in results["rows"]] == [1000, 3000]
    for row in results["rows"]:
        assert row["ns_per_edge"] == pytest.approx(1e9 * row["sweep"] / row["edges"])
    memory = results["memory"]
    assert memory["tables_and_messages"] == 3000 * (36 + 24) and memory["edges"] == 3000
    text = (tmp_path / "linear.md").read_text()
    assert "| 1,000 |" in text and "Peak memory at 3,000 edges" in text and "Not finished" not in text
    assert (tmp_path / "linear.png").read_bytes().startswith(b"\x89PNG")
    assert any("Peak memory" in str(part) for part in shown)


def test_peak_memory_includes_the_field():
    memory = measure_peak_memory(growth_workload(300_000), BenchOptions(threads=1))
    assert memory["tables_and_messages"] == 18_000_000
    assert memory["peak"] > memory["field"] > 0.5 * 4 * 9 * 300_000
    assert memory["ratio"] == pytest.approx(memory["peak"] / 18_000_000)


def test_memory_is_not_measured_when_too_little_is_free(monkeypatch):
    monkeypatch.setattr(machine, "available_memory", lambda device: 10_000)
    assert "skipped" in measure_peak_memory(growth_workload(1000), BenchOptions())


def test_resident_memory_grows_with_a_tensor():
    release_freed_memory()  # or the tensor may take memory that an earlier test freed
    before = resident_bytes()
    held = torch.ones(20_000_000)
    assert 60e6 < resident_bytes() - before < 200e6 and held[-1] == 1
