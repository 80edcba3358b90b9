import json

import pytest
from support.command_line import call, refused

from accord.app.commands import demo


@pytest.fixture
def small(monkeypatch):
    """The demo with few graphs and epochs: it runs, but its scores are low."""
    for name, value in {"TRAIN": 20, "VAL": 20, "TEST": 20, "EPOCHS": 5}.items():
        monkeypatch.setattr(demo, name, value)


def test_the_demo_ends_with_a_table_and_a_report(small, tmp_path):
    run = tmp_path / "demo"
    result = call("demo", "--run", run)
    assert result.exit_code == 0, result.output
    for word in (*demo.ROW_TITLES.values(), "graph accuracy", "report.html"):
        assert word in result.stdout, word
    assert "20 test graphs" in result.stdout
    scores = json.loads((run / "results.json").read_text())["test"]
    assert list(scores) == list(demo.ROW_TITLES)
    # Five epochs teach little, but the true field uses that little better than the node network alone.
    assert scores["ceiling"]["node_accuracy"] > scores["gnn"]["node_accuracy"]
    assert all(case["images"] for case in json.loads((run / "cases.json").read_text())["cases"])


def test_an_earlier_demo_is_replaced_and_other_files_stay(small, tmp_path):
    run = tmp_path / "demo"
    for seed in ("0", "1"):
        assert call("demo", "--run", run, "--seed", seed).exit_code == 0
        (run / "notes.txt").write_text("mine")
        (run / "plots").mkdir(exist_ok=True)
    assert json.loads((run / "config.json").read_text())["settings"]["seed"] == 1
    assert (run / "notes.txt").read_text() == "mine" and (run / "plots").is_dir()
    # The demo knows all its files; otherwise the next demo would find some of the last.
    assert {path.name for path in run.iterdir()} - {".lock", "notes.txt", "plots", "tensorboard"} == {
        *demo.DEMO_FILES,
        "config.json",
    }
    assert len(list(run.glob("tensorboard/*"))) <= 1


@pytest.mark.parametrize("name", ["fruit", "digits"])
def test_a_run_that_is_not_a_demo_is_left_alone(small, tmp_path, name):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"data": {"name": name}}))
    (run / "model.safetensors").write_text("weeks of work")
    assert "is not the folder of an earlier demo" in refused("demo", "--run", run)
    assert (run / "model.safetensors").read_text() == "weeks of work"


def test_a_folder_without_a_run_is_left_alone(small, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert "is not the folder of an earlier demo" in refused("demo", "--run", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
