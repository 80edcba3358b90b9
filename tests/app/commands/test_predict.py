import csv
import io
import json
import sys

import pytest
import torch
from support.command_line import QUICK, call, make_graph, refused
from torch_geometric.data import Data

from accord.datasets import read_graph, write_graph
from accord.estimator import NodeClassifier
from accord.inference import propagate
from accord.methods import ProxyModel


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_labels_equal_those_of_the_model(trained, data_folder, tmp_path):
    rows = table(call("predict", trained, data_folder / "test" / "g01.npz").stdout)
    model, graph = NodeClassifier.load(trained), read_graph(data_folder / "test" / "g01.npz")
    names = ["apple", "pear", "quince"]
    assert [row["label"] for row in rows] == [names[state] for state in model.predict(graph)]
    assert [row["node"] for row in rows] == [str(node) for node in range(7)]
    assert all(0 <= float(row["probability"]) <= 1 for row in rows)


def test_marginals_as_csv_and_json(trained, data_folder, tmp_path):
    graph = data_folder / "train" / "g00"
    for name in ("labels.csv", "deep/labels.json"):
        result = call("predict", trained, graph, "--marginals", "--out", tmp_path / name)
        assert result.exit_code == 0 and "7 rows written" in result.stderr and result.stdout == ""
    rows = json.loads((tmp_path / "deep" / "labels.json").read_text())
    assert list(rows[0]) == ["node", "label", "p(apple)", "p(pear)", "p(quince)"]
    assert sum(rows[0][f"p({name})"] for name in ("apple", "pear", "quince")) == pytest.approx(1, abs=1e-5)
    text = [{key: str(value) for key, value in row.items()} for row in rows]
    assert table((tmp_path / "labels.csv").read_text()) == text


@pytest.mark.filterwarnings("always::accord.errors.ConvergenceWarning")
def test_rough_probabilities_come_with_a_warning(trained, data_folder, monkeypatch):
    graph = data_folder / "test" / "g01.npz"
    assert "did not converge" not in call("predict", trained, graph).stderr
    monkeypatch.setattr(ProxyModel, "beliefs_of", lambda self, field, semiring="sum": propagate(field, max_sweeps=1))
    result = call("predict", trained, graph)
    assert result.exit_code == 0 and f"Warning: {graph}: belief propagation did not converge" in result.stderr


def test_nodes_have_the_names_of_their_file(trained, tmp_path):
    (tmp_path / "nodes.csv").write_text("id,x0,x1,x2,label\nanna,1,0,0,unheard of\nbert,0,1,0,\n")
    (tmp_path / "edges.csv").write_text("source,target\nanna,bert\n")
    assert [row["node"] for row in table(call("predict", trained, tmp_path).stdout)] == ["anna", "bert"]


def test_columns_are_matched_by_name(trained, tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    shown = []
    for header, rows in (("x0,x1,x2", "1,0,5\n0,2,1"), ("x2,x0,x1", "5,1,0\n1,0,2")):
        first, second = rows.split("\n")
        (tmp_path / "nodes.csv").write_text(f"id,{header}\n0,{first}\n1,{second}\n")
        shown.append(call("predict", trained, tmp_path).stdout)
    assert shown[0] == shown[1] and len(table(shown[0])) == 2
    (tmp_path / "nodes.csv").write_text("id,x0,x1,size\n0,1,0,5\n1,0,2,1\n")
    assert "the graph has no feature 'x2'" in refused("predict", trained, tmp_path)


def test_a_folder_of_graphs_gives_one_table(trained, data_folder):
    rows = table(call("predict", trained, data_folder / "test").stdout)
    assert len(rows) == 6 * 7
    assert rows[0]["graph"] == "g00.npz" and rows[-1]["graph"] == "g05.npz"


def test_graphs_without_edges_are_labelled(trained, tmp_path):
    for nodes in (1, 3):
        write_graph(Data(x=torch.eye(3)[:nodes], edge_index=torch.empty(2, 0, dtype=torch.long)), tmp_path / "g.json")
        assert len(table(call("predict", trained, tmp_path / "g.json").stdout)) == nodes


def test_another_number_of_features_is_refused(trained, tmp_path):
    write_graph(Data(x=torch.ones(2, 5), edge_index=torch.tensor([[0], [1]])), tmp_path / "g.npz")
    message = refused("predict", trained, tmp_path / "g.npz")
    assert "g.npz: the graph has 5 features a node, the model was trained on 3" in message


def test_bad_paths_are_refused(trained, data_folder, tmp_path):
    graph = data_folder / "test" / "g01.npz"
    assert "there is no such folder" in refused("predict", tmp_path / "none", graph)
    assert "has no config.json, so it is not a run" in refused("predict", tmp_path, graph)
    assert "none.npz: there is no such file" in refused("predict", trained, tmp_path / "none.npz")
    assert "cannot be written to .xls files" in refused("predict", trained, graph, "--out", tmp_path / "labels.xls")


def test_parquet_needs_its_package(trained, data_folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as if it were not installed
    message = refused("predict", trained, data_folder / "test" / "g01.npz", "--out", tmp_path / "labels.parquet")
    assert "needs the package pyarrow" in message and ".csv" in message


def test_several_tasks_keep_their_names(tmp_path):
    for number in range(6):
        graph = make_graph(number)
        graph.y = torch.stack([graph.y % 2, graph.y // 2], 1)
        folder = tmp_path / "data" / ("test" if number > 3 else "train") / f"g{number}"
        write_graph(graph, folder)
        nodes = folder / "nodes.csv"
        nodes.write_text(nodes.read_text().replace("label_0", "label_odd").replace("label_1", "label_big"))
    run = tmp_path / "run"
    assert call("fit", tmp_path / "data", "--run", run, *QUICK, "--max-epochs", "2").exit_code == 0
    assert "micro_f1" in json.loads((run / "results.json").read_text())["test"]["spn"]
    rows = table(call("predict", run, tmp_path / "data" / "test" / "g4").stdout)
    assert [(row["node"], row["task"]) for row in rows[:3]] == [("0", "odd"), ("0", "big"), ("1", "odd")]


def test_thresholds_and_precision_are_those_of_the_model(trained, data_folder, tmp_path):
    path = data_folder / "test" / "g01.npz"
    model, graph = NodeClassifier.load(trained), read_graph(path)
    names = ["apple", "pear", "quince"]
    rows = table(call("predict", trained, path, "--threshold", "pear=0.05,2=0.9").stdout)
    expected = model.predict(graph, threshold={"pear": 0.05, 2: 0.9})
    assert [row["label"] for row in rows] == [names[state] for state in expected]
    assert expected.tolist() != model.predict(graph).tolist(), "the thresholds change something"
    sure = model.predict_proba(graph).amax(1).max()
    model.model_.validated.precision[0][:] = [[float(sure), 1.0]]  # only the surest labels are right often enough
    model.save(tmp_path / "model")
    call("predict", tmp_path / "model", path, "--precision", "0.99", "--out", tmp_path / "labels.json")
    rows = json.loads((tmp_path / "labels.json").read_text())
    labels = model.predict(graph, precision=0.99).tolist()
    assert [row["label"] for row in rows] == [None if state < 0 else names[state] for state in labels]
    assert [row["probability"] is None for row in rows] == [state < 0 for state in labels] and -1 in labels
    assert "either precision or threshold" in refused(
        "predict", trained, path, "--threshold", "1=0.5", "--precision", 1
    )
    assert "not a number" in refused("predict", trained, path, "--threshold", "pear=often")
    assert "--diagnose is about joint labels" in refused("predict", trained, path, "--precision", 1, "--diagnose")
