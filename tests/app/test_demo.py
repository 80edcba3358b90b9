import json

import pytest
from command_line import call, refused

from accord.app import demo


@pytest.fixture
def small(monkeypatch):
    """The demo with few graphs and epochs: what it does, not how well."""
    for name, value in {"TRAIN": 20, "VAL": 8, "TEST": 10, "EPOCHS": 5}.items():
        monkeypatch.setattr(demo, name, value)


def test_the_demo_ends_with_a_table_and_a_report(small, tmp_path):
    run = tmp_path / "demo"
    result = call("demo", "--run", run)
    assert result.exit_code == 0, result.output
    for word in (*demo.TITLES.values(), "graph accuracy", "report.html"):
        assert word in result.stdout, word
    assert "10 test graphs" in result.stdout
    scores = json.loads((run / "results.json").read_text())["test"]
    assert list(scores) == list(demo.TITLES)
    # Five epochs teach little, but the true field makes more of that little than each node alone.
    assert scores["ceiling"]["node_accuracy"] > scores["gnn"]["node_accuracy"]
    assert all(case["images"] for case in json.loads((run / "cases.json").read_text()))


def test_an_earlier_demo_is_replaced_and_nothing_else(small, tmp_path):
    run = tmp_path / "demo"
    run.mkdir()
    (run / "config.json").write_text(json.dumps({"data": {"name": "fruit"}}))
    assert "holds something else than an earlier demo" in refused("demo", "--run", run)
    (run / "config.json").write_text(json.dumps({"data": {"name": "digits"}}))
    (run / "model.safetensors").touch()
    assert call("demo", "--run", run, "--seed", "1").exit_code == 0
