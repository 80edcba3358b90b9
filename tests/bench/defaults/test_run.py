import json

import pytest
import torch
from support.command_line import call, make_graph, refused

from accord.bench.defaults import Record, Task, _run, load_task, run_defaults, table
from accord.bench.defaults._peers import fit_logistic_regression, fit_plain_gnn
from accord.errors import OptionError
from accord.evaluation import node_accuracy

SMALL = Task("small", tuple([make_graph(10 * split + n) for n in range(9)] for split in range(3)), 3, "graph")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(_run, "load_task", lambda name, seed: SMALL)


def test_records_are_kept_and_not_run_again(small, tmp_path):
    told = []
    first = run_defaults(["small"], [0], ["logistic", "sage"], tmp_path, tell=told.append)
    assert [(record.model, record.seed) for record in first] == [("logistic", 0), ("sage", 0)] and len(told) == 2
    quick = {"encoder": "mlp", "max_epochs": 3, "accelerator": "cpu"}
    second = run_defaults(["small"], [0], ["logistic", "default"], tmp_path, quick, told.append)
    assert second[:2] == first and len(told) == 3
    assert set(second[2].scores) == {"gnn", "edge", "spn"}
    stored = json.loads((tmp_path / "records.json").read_text())
    assert [Record(**row) for row in stored["records"]] == second
    text = (tmp_path / "README.md").read_text()
    assert text == table(second)
    for word in ("plain SAGE", "default: our SPN", "Calibration error", "| small |"):
        assert word in text, word


def test_each_record_keeps_the_provenance_of_its_own_run(small, tmp_path, monkeypatch):
    """A store of an older version has one provenance for the whole file, which then counts for all its records."""
    run_defaults(["small"], [0], ["logistic"], tmp_path, tell=len)
    stored = json.loads((tmp_path / "records.json").read_text())
    (row,) = stored["records"]
    assert {"torch", "python", "device", "commit", "date"} <= set(row.pop("provenance")) and set(stored) == {"records"}
    old = {"commit": "0123456789ab", "device": "cuda: of another machine"}
    (tmp_path / "records.json").write_text(json.dumps({"records": [row], "provenance": old}))
    monkeypatch.setenv("ACCORD_COMMIT", "ba9876543210")
    run_defaults(["small"], [0, 1], ["logistic"], tmp_path, tell=len)
    records = json.loads((tmp_path / "records.json").read_text())["records"]
    assert records[0]["provenance"] == old and records[1]["provenance"]["commit"] == "ba9876543210"


def _record(model, seed, nodes, graphs=0.5, errors=(0.02, 0.02), task="made", commit="abc"):
    def scores(value, error):
        return {"node_accuracy": value, "graph_accuracy": graphs, "ece": error}

    parts = {model: scores(nodes, errors[0])}
    if model == "default":
        parts = {"gnn": scores(nodes, errors[0]), "spn": {**scores(nodes, errors[1]), "graph_accuracy": 0.6}}
    return Record(
        task, model, seed, parts, 10.0 + seed, provenance={"commit": commit, "device": "cpu", "date": "today"}
    )


def test_the_page_tells_seconds_sources_and_where_the_default_is_behind():
    records = [_record("default", seed, 0.8, errors=(0.02, 0.03 + 0.01 * seed)) for seed in range(3)]
    records += [_record("sage", seed, 0.79 + 0.01 * seed) for seed in range(3)]
    page = table(records)
    assert "seeds (0 to 2)" in page and "| made | 11.0 ± 1.0 | 11.0 ± 1.0 |" in page
    assert "- Nodes on made" not in page, "equal to the best peer"
    assert "- Calibration error on made: 4.0 ± 1.0, its GNN 2.0 ± 0.0; difference, seed by seed, +2.0 ± 1.0." in page
    assert "above its GNN on 1 of 1 tasks, below on 0, equal on 0" in page
    assert "| default | cpu | abc | today | made (0 to 2) |" in page
    behind = table([*records, _record("gcn", 0, 0.81)], notes="Said by hand.")
    assert "- Nodes on made: 80.0 ± 0.0, plain GCN 81.0." in behind and behind.endswith("\n\nSaid by hand.\n")


def test_notes_beside_the_records_end_the_page(small, tmp_path):
    (tmp_path / "notes.md").write_text("Said by hand.\n")
    run_defaults(["small"], [0], ["logistic"], tmp_path, tell=len)
    assert (tmp_path / "README.md").read_text().endswith("\nSaid by hand.\n")


@pytest.mark.parametrize("name", ["logistic", "gcn", "sage"])
def test_peers_learn(name):
    cpu = torch.device("cpu")
    predict = fit_logistic_regression(SMALL) if name == "logistic" else fit_plain_gnn(name, SMALL, 0, cpu)
    probabilities = predict(SMALL.test)
    truth = torch.cat([graph.y for graph in SMALL.test])
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(len(truth)))
    assert float(node_accuracy(probabilities.argmax(-1), truth)) > 0.6  # a third by chance


def test_digits_need_no_file():
    task = load_task("digits", 0)
    assert [len(split) for split in task.splits] == [200, 100, 200] and task.num_states == 10


@pytest.mark.data("own_chameleon.npz")
@pytest.mark.parametrize("form", ["parts", "egos"])
def test_splits_of_one_graph_share_no_node(form):
    task = load_task(f"chameleon-{form}", 1)
    rows = [{tuple(row.nonzero().flatten().tolist()) for graph in split for row in graph.x} for split in task.splits]
    # Pages may have equal words, but hardly any two have the same thirty.
    long = [{row for row in split if len(row) > 30} for split in rows]
    assert long[0] and not long[0] & long[2] and not long[0] & long[1]
    again = load_task(f"chameleon-{form}", 1)
    assert all(torch.equal(a.x, b.x) for a, b in zip(task.test, again.test, strict=True))
    assert len(task.train) == {"parts": 1, "egos": 200}[form]


@pytest.mark.data("ocr_letters.npz")
def test_letters_are_chains_in_reading_order():
    task = load_task("letters", 0)
    word = task.train[0]
    assert torch.equal(
        word.edge_index, torch.stack([torch.arange(word.num_nodes - 1), torch.arange(1, word.num_nodes)])
    )
    assert word.x.shape[1] == 128 and set(word.x.unique().tolist()) <= {0.0, 1.0}


def test_unknown_tasks_are_refused(tmp_path):
    with pytest.raises(OptionError, match="no task 'cats'.*photo-parts"):
        load_task("cats", 0)
    assert "no task 'cats'" in refused("bench", "defaults", "--task", "cats", "--out", tmp_path)


def test_the_command_writes_the_table(small, tmp_path):
    result = call("bench", "defaults", "--task", "small", "--model", "logistic", "--seeds", "0", "--out", tmp_path)
    assert result.exit_code == 0 and "Nodes right" in result.stdout and "small" in result.stderr
