"""`accord reproduce`: arguments, files and errors."""

import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from accord.app.cli import app
from accord.app.commands.reproduce import parse_seeds
from accord.errors import OptionError
from accord.experiments.reproduction import Cell, Context, Record, Store, _runner


def test_seeds_are_parsed():
    assert parse_seeds("1-5") == (1, 2, 3, 4, 5)
    assert parse_seeds("1,2, 7") == (1, 2, 7)
    assert parse_seeds("3-4,3") == (3, 4)
    for bad in ("", "a", "5-1", "1-", "-3"):
        with pytest.raises(OptionError, match="1-5 or 1,2,7"):
            parse_seeds(bad)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["main"], "no table 'main'"), (["citation", "--encoder", "sage"], "'sage' is not in this table")],
)
def test_unknown_names_are_refused(arguments, message, tmp_path):
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)])
    assert result.exit_code == 2 and message in " ".join(result.output.split())


@pytest.mark.data("planetoid_citeseer.npz")
def test_a_slice_of_the_citation_table(tmp_path):
    arguments = ["reproduce", "citation", "--benchmark", "citeseer*", "--encoder", "gcn", "--preset", "paper"]
    result = CliRunner().invoke(app, [*arguments, "--seeds", "1-2", "--max-epochs", "2", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| citeseer* | gcn | paper | 2 |" in result.output.replace("\n", "")
    assert (tmp_path / "citation" / "paper-citeseer-gcn.json").is_file()
    assert "accord reproduce citation" in (tmp_path / "citation" / "README.md").read_text()


def test_lines_of_the_table_are_not_wrapped(monkeypatch, tmp_path):
    row = "| " + " | ".join(["citeseer*"] * 20) + " |"
    monkeypatch.setattr("accord.app.commands.reproduce.TABLES", {"citation": lambda *args, **options: row})
    result = CliRunner().invoke(app, ["reproduce", "citation", "--out", str(tmp_path)], env={"COLUMNS": "80"})
    assert result.stdout == row + "\n"


SIZES = ["reproduce", "table-8", "--benchmark", "cora*", "--benchmark", "citeseer*", "--benchmark", "pubmed*"]


@pytest.mark.data("planetoid_cora.npz", "planetoid_citeseer.npz", "planetoid_pubmed.npz")
def test_a_killed_run_of_the_paper_goes_on(tmp_path):
    """By a real kill, as soon as the first record is stored; the same command computes the rest."""
    store = tmp_path / "reproduction" / "records.jsonl"
    code = "from accord.app.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *SIZES, "--out", str(tmp_path)], stderr=subprocess.DEVNULL)
    while process.poll() is None and not (store.is_file() and b'"record"' in store.read_bytes()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = len(Store(store).read()[0])
    result = CliRunner().invoke(app, [*SIZES, "--budget", "10m", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    records = Store(store).read()[0]
    assert [record.cell.data for record in records] == ["cora*", "citeseer*", "pubmed*"] and before >= 1
    assert f"{3 - before} tasks computed, 0 left" in result.output
    assert "1000" in (tmp_path / "reproduction" / "report.html").read_text()


@pytest.mark.data("planetoid_cora.npz", "planetoid_citeseer.npz", "planetoid_pubmed.npz")
def test_other_processes_store_what_this_one_stores(tmp_path):
    stored = {}
    for name, engine in (("this", []), ("processes", ["--workers", "2"])):
        stored[name] = reproduced(SIZES, engine, tmp_path / name, 3)
    assert stored["processes"] == stored["this"] and len(stored["this"]) == 3


def reproduced(asked, engine, out, tasks):
    """The records of a run of so many tasks, in one order."""
    result = CliRunner().invoke(app, [*asked, *engine, "--budget", "10m", "--out", str(out)])
    assert result.exit_code == 0 and f"{tasks} tasks computed, 0 left" in result.output, result.output
    records = Store(out / "reproduction" / "records.jsonl").read()[0]
    return sorted((record.cell.key, record.seed, record.metrics) for record in records)


@pytest.mark.matrix
@pytest.mark.data("planetoid_citeseer.npz")
def test_training_by_ray_survives_a_worker_that_is_killed(tmp_path, ray_cluster, monkeypatch):
    asked = ["reproduce", "table-2", "--benchmark", "citeseer*", "--encoder", "gcn"]
    asked += ["--preset", "authors", "--seeds", "1-2", "--max-epochs", "2", "--accelerator", "cpu"]
    whole = reproduced(asked, [], tmp_path / "this", 1)
    attempt, killed = _runner.attempt, tmp_path / "killed"

    def attempt_once_killed(begun, report):
        def kill(told):
            """In the middle of the first task to be trained, at an evaluation."""
            if not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        return attempt(begun, kill)

    monkeypatch.setattr(_runner, "attempt", attempt_once_killed)
    found = reproduced(asked, ["--engine", "ray", "--workers", "2"], tmp_path / "ray", 1)
    assert killed.exists() and [row[:2] for row in found] == [row[:2] for row in whole]
    for (*_, metrics), (*_, wanted) in zip(found, whole, strict=True):
        assert metrics.keys() == wanted.keys()
        for name, measures in wanted.items():  # the number of threads decides on rounding
            assert metrics[name] == pytest.approx(measures, abs=0.01), name


def test_what_a_target_has_is_checked(tmp_path):
    for arguments, message in (
        (["table-2", "--encoder", "mlp"], "has no cell with encoder mlp"),
        (["table-2", "--budget", "soon"], "--budget 'soon' cannot be read"),
        (["citation", "--budget", "1m"], "--budget is for all, table-1 and so on"),
        (["ppi", "--address", "auto", "--gpus-per-worker", "0.5"], "--address, --gpus-per-worker are for all, table-1"),
        (["table-2", "--budget", "0s", "--merge", str(tmp_path / "none.jsonl")], "no such file"),
    ):
        result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path)])
        assert result.exit_code == 2 and message in " ".join(result.output.split()), result.output


def test_files_of_another_machine_are_merged_and_reported(tmp_path):
    there, document = tmp_path / "there.jsonl", tmp_path / "docs" / "page.md"
    context = Context({}, "raw", {"device": "cuda: far away"}, "a test")
    cell = Cell("training", "cora*", "spn", "gcn", "appendix")
    metrics = {"gnn": {"graph": 0.5726}}
    record = Record(cell=cell, seed=1, epochs=200, recipe="imported", metrics=metrics, context=context.code)
    Store(there).append([record], [context])
    arguments = ["table-2", "--budget", "0s", "--merge", str(there), "--document", str(document)]
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0 and "1 new records" in " ".join(result.output.split())
    assert "57.26 (1)" in document.read_text() and "cuda: far away" in document.read_text()
