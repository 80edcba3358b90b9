"""The table of all methods: each row runs, is stored, and stands beside the paper's figure."""

import json
from dataclasses import replace

import pytest

from accord.errors import InputError, OptionError
from accord.experiments import (
    ROWS,
    read_results,
    reproduce_convergence,
    reproduce_methods,
    reproduce_run_time,
    run_row,
)
from accord.experiments import _run_time as run_time
from accord.experiments._methods_table import methods_table
from accord.experiments._paper import paper_figure

pytestmark = pytest.mark.data("planetoid_citeseer.npz")


@pytest.fixture(scope="module")
def results():
    return {row: run_row(row, "citeseer*", "gcn", "accord", (1, 2), 1, "cpu") for row in ROWS}


def test_every_row_runs(results):
    for row, result in results.items():
        assert set(result.scores) == {"graph", "node", "node_unseen"}
        assert all(len(values) == 2 and 0 <= min(values) for values in result.scores.values())
        assert result.encoder == (ROWS[row].encoder or "gcn")
    assert results["spn-refined"].recipe["refinement"] and not results["spn"].recipe["refinement"]
    assert results["crf-pl"].recipe["objective"] == "pseudolikelihood"
    assert results["crf-linear"].recipe["edge_encoder"]["kind"] == "identity"
    assert results["spn-shared"].recipe["shared"] and results["spn-constrained"].recipe["consistency"] > 0


def test_results_are_stored_once_and_shown_with_the_papers(results, tmp_path):
    for result in results.values():
        result.write(tmp_path)
    assert {result.row for result in read_results(tmp_path)} == set(ROWS)
    jobs = []
    text = reproduce_methods(
        tmp_path, ["citeseer*"], ["gat"], ["accord"], ["crf-linear"], announce=lambda job, row: jobs.append(job)
    )
    assert jobs == []  # what is stored is not run again
    row = next(line for line in text.splitlines() if line.startswith("| CRF, linear"))
    assert "40.6 ± 0.8" in row and "▼" in row  # one epoch is not enough
    assert (tmp_path / "README.md").read_text().startswith("# Citation sets: every method")


def test_variants_are_not_held_against_the_papers_row(results):
    table = methods_table([replace(results[row], encoder="gat") for row in ("spn-shared", "spn")], ROWS)
    lines = table.splitlines()
    shared, plain = (next(line for line in lines if line.startswith(row)) for row in ("| SPN, one shared", "| SPN |"))
    assert "±" in shared and "49.0" not in shared and "49.0" in plain  # the paper's SPN-GAT
    assert paper_figure("graph", "spn", "gat", "cora*").mean == 58.78
    assert paper_figure("node", "gmnn", "gat", "pubmed*").mean == 78.00
    assert paper_figure("graph", "smooth", "gat", "cora*") is None


@pytest.mark.parametrize(
    ("run", "options", "message"),
    [
        (reproduce_methods, {"rows": ["svm"]}, "method 'svm' is not in this table"),
        (reproduce_methods, {"benchmarks": ["ppi"]}, "benchmark 'ppi' is not in this table"),
        (reproduce_run_time, {"encoders": ["unet"]}, "encoder 'unet' is not timed"),
        (reproduce_convergence, {"presets": ["mine"]}, "preset 'mine' is not drawn"),
    ],
)
def test_what_a_table_does_not_have_is_refused(run, options, message, tmp_path):
    with pytest.raises(OptionError, match=message):
        run(tmp_path, **options)


@pytest.fixture
def clock(monkeypatch):
    """Methods whose epochs take a known time on a clock of their own, and a second of set-up."""
    now, cost = [0.0], {"gnn": 0.5, "spn": 1.0, "crf": 1.5}

    def method(name):
        class Timed:
            def __init__(self, recipe):
                self.epochs = recipe.training.max_epochs

            def fit(self, *data):
                now[0] += 1 + cost[name] * self.epochs

        return Timed

    monkeypatch.setattr(run_time, "METHODS", {name: method(name) for name in cost})
    monkeypatch.setattr(run_time.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(run_time, "BENCHMARKS", ("citeseer*",))
    return cost


def test_run_times_are_ratios_without_set_up(clock, tmp_path):
    text = reproduce_run_time(tmp_path, ["citeseer*"], ["gcn"], max_epochs=2, accelerator="cpu")
    (stored,) = (json.loads(path.read_text()) for path in tmp_path.glob("*.json"))
    assert stored["seconds"] == {name: [pytest.approx(seconds)] * run_time.REPEATS for name, seconds in clock.items()}
    assert "| 500.0 | 2.0x | 3.0x |" in text


def test_run_times_of_a_disturbed_machine_are_refused(clock, tmp_path):
    clock["spn"] = -0.1
    with pytest.raises(InputError, match="slowed this machine down"):
        reproduce_run_time(tmp_path, ["citeseer*"], ["gcn"], max_epochs=2, accelerator="cpu")
    assert not list(tmp_path.glob("*.json"))


def test_the_game_is_drawn_from_its_start(tmp_path):
    text = reproduce_convergence(tmp_path, ["citeseer*"], ["gcn"], seeds=(1,), max_epochs=2, accelerator="cpu")
    stored = json.loads((tmp_path / "accord-citeseer-gcn.json").read_text())
    starts = {name: runs[0][0]["field_score"] for name, runs in stored["curves"].items()}
    assert starts["spn"] > starts["without"] + 0.2  # the proxy's solution is where the SPN begins
    assert all([row["epoch"] for row in runs[0]] == [0, 1, 2] for runs in stored["curves"].values())
    assert (tmp_path / "accord-citeseer-gcn.png").stat().st_size > 10_000
    assert "SPN without proxy" in text
