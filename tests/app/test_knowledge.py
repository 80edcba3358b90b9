"""Known labels and constraints as the command line takes them."""

import csv
import io
import json

import pytest
import torch
from support.command_line import call, make_graph, refused

from accord.app.knowledge import GivenOptions
from accord.datasets import read_graph, write_graph
from accord.errors import GraphError
from accord.estimator import NodeClassifier

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::accord.errors.{name}") for name in ("ConvergenceWarning", "DepartureWarning")
]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def labels(*arguments):
    result = call("predict", *arguments)
    assert result.exit_code == 0, result.output
    return [row["label"] for row in table(result.stdout)]


@pytest.fixture
def graph(tmp_path):
    """A folder of tables whose nodes have names; two labels are in the file."""
    path = tmp_path / "graph"
    path.mkdir()
    x = make_graph(301).x
    rows = [f"n{node},{','.join(map(str, row))}" for node, row in enumerate(x.tolist())]
    own = ["pear", "", "", "quince", "", "", ""]
    lines = [f"{row},{label}" for row, label in zip(rows, own, strict=True)]
    (path / "nodes.csv").write_text("\n".join(["id,x0,x1,x2,label", *lines]) + "\n")
    edges = [f"n{node},n{(node + 1) % 7}" for node in range(7)]
    (path / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    return path


def model_and_graph(trained, path):
    return NodeClassifier.load(trained), read_graph(path, with_labels=False)


def test_known_labels_from_a_file(trained, graph, tmp_path):
    (tmp_path / "known.csv").write_text("node,label\nn1,quince\nn2,\nn4,apple\n")
    result = call("predict", trained, graph, "--known", tmp_path / "known.csv", "--marginals")
    rows = table(result.stdout)
    assert rows[1]["label"] == "quince" and float(rows[1]["p(quince)"]) == 1 and rows[4]["label"] == "apple"
    model, data = model_and_graph(trained, graph)
    wanted = model.predict(data, known={"n1": "quince", "n4": "apple"})
    assert [row["label"] for row in rows] == [model.label_names_[state] for state in wanted]


def test_labels_in_the_graphs_own_file(trained, graph):
    found = labels(trained, graph, "--known", "labels")
    assert found[0] == "pear" and found[3] == "quince"
    model, data = model_and_graph(trained, graph)
    assert found == [model.label_names_[state] for state in model.predict(data, known={0: "pear", 3: "quince"})]


def test_what_predict_wrote_can_be_given_back(trained, data_folder, tmp_path):
    """Also for a folder of graphs, with a column graph."""
    out = tmp_path / "labels.csv"
    call("predict", trained, data_folder / "test", "--out", out)
    rows = table(out.read_text())
    kept = [row for row in rows if row["node"] in ("0", "3")]
    for row in kept:
        row["label"] = "pear"
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, kept[0])
        writer.writeheader()
        writer.writerows(kept)
    again = table(call("predict", trained, data_folder / "test", "--known", out).stdout)
    assert len(again) == len(rows) and {row["label"] for row in again if row["node"] in ("0", "3")} == {"pear"}


def test_constraints(trained, graph):
    names = ["apple", "pear", "quince"]
    model, data = model_and_graph(trained, graph)
    for options, given in (
        (("--forbid", "apple:apple", "--forbid", "pear:quince"), {"forbid": [(0, 0), (1, 2)]}),
        (("--forbid", "pear:pear@n0:n1", "--forbid", "apple:pear"), {"forbid": {(0, 1): [(1, 1)], None: [(0, 1)]}}),
        (("--forbid-directed", "pear:quince"), {"forbid_directed": [(1, 2)]}),
        (("--require", "quince:apple", "--require", "pear:pear"), {"require": [(2, 0), (1, 1)]}),
        (("--prefer", "quince:4", "--prefer", "apple:pear:-3.5"), {"prefer": {2: 4.0, (0, 1): -3.5}}),
        (
            ("--prefer", "quince:9@n5", "--prefer", "apple:apple:9@n1:n2"),
            {"prefer": {5: {2: 9.0}, (1, 2): {(0, 0): 9.0}}},
        ),
    ):
        assert labels(trained, graph, *options) == [names[state] for state in model.predict(data, **given)], options
    assert set(labels(trained, graph, "--require", "quince:quince")) == {"quince"}


def test_contradictions_are_one_line(trained, graph, tmp_path):
    (tmp_path / "known.csv").write_text("id,label\nn1,pear\nn2,pear\n")
    line = refused("predict", trained, graph, "--known", tmp_path / "known.csv", "--forbid", "pear:pear")
    assert str(graph) in line and "no labels can obey the constraints together" in line and "'n1', 'n2'" in line


def test_what_cannot_be_used_is_refused(trained, graph, data_folder, tmp_path):
    known = tmp_path / "known.csv"
    for content, message in (
        ("node,label\nn9,pear\n", "line 2: the node 'n9' is unknown"),
        ("node,label\nn1,fig\n", "line 2: the label 'fig' is unknown. Known: apple, pear, quince"),
        ("node,label\nn1,pear\nn1,apple\n", "line 3: node 'n1' has another label in an earlier line"),
        ("node,label\nn1\n", "line 2: has 1 cells"),
        ("name,label\nn1,pear\n", "known labels need the columns node (or id) and label"),
        ("", "but there are none"),
        ('node,label\n"n1,pear\n', "cannot be read as csv"),
    ):
        known.write_text(content)
        assert message in refused("predict", trained, graph, "--known", known)
    assert "there is no such file" in refused("predict", trained, graph, "--known", tmp_path / "nothing.csv")
    known.write_text("node,label\n0,pear\n")
    assert "need a column graph" in refused("predict", trained, data_folder / "test", "--known", known)
    known.write_text("graph,node,label\ng99.npz,0,pear\n")
    assert "there is no graph 'g99.npz'" in refused("predict", trained, data_folder / "test", "--known", known)
    for options, message in (
        (("--forbid", "pear"), "--forbid 'pear' is not understood. Give two labels, A:B"),
        (("--forbid", "pear:fig"), "Labels: apple, pear, quince"),
        (("--forbid", "pear:pear@n1"), "no edge is named after the @"),
        (("--forbid", "pear:pear@n1:n5"), "the graph has no such edge"),
        (("--prefer", "pear:much"), "--prefer 'pear:much' is not understood"),
        (("--prefer", "pear:nan"), "prefer holds nan nats"),
        (("--prefer", "pear:1@n77"), "'n77' names no node of the graph"),
    ):
        assert message in refused("predict", trained, graph, *options)


def test_a_table_of_what_is_doubtful(trained, graph, tmp_path):
    result = call("predict", trained, graph, "--diagnose", "--out", tmp_path / "found.csv")
    assert result.exit_code == 0 and "labels differ from the node network's" in result.stderr
    rows = table((tmp_path / "found.csv").read_text())
    assert list(rows[0])[1:] == ["label", "probability", "gnn", "disagrees", "entropy", "unlikely_edges", "converged"]
    model, data = model_and_graph(trained, graph)
    found = model.diagnose(data)
    for node, row in enumerate(rows):
        assert int(row["disagrees"]) == int(row["label"] != row["gnn"]) == int(found.disagrees[0, node])
        assert float(row["entropy"]) == pytest.approx(float(found.entropy[0, node]), abs=1e-6)
    assert [row["label"] for row in rows] == labels(trained, graph)
    folder = call("predict", trained, data_folder_of(graph), "--diagnose")
    assert folder.exit_code == 0


def data_folder_of(graph):
    """A folder of two graphs: the graph, and one from an .npz file without ids."""
    folder = graph.parent / "several"
    write_graph(make_graph(302, with_labels=False), folder / "a.npz")
    write_graph(make_graph(303, with_labels=False), folder / "b.npz")
    return folder


def test_known_labels_of_several_tasks(tmp_path):
    graphs = [make_graph(seed) for seed in range(8)]
    for own in graphs:
        own.y = torch.stack([own.y == 0, own.y == 1], 1).long()
    model = NodeClassifier(encoder="mlp", max_epochs=3, accelerator="cpu", task_names=["first", "second"]).fit(graphs)
    path = tmp_path / "known.csv"
    path.write_text("node,task,label\n0,second,1\n2,first,0\n2,second,1\n")
    given = GivenOptions(known=str(path))
    assert given.arguments(model, graphs[0], given.rows())["known"] == {0: [-1, 1], 2: [0, 1]}
    path.write_text("node,label\n0,1\n")
    with pytest.raises(GraphError, match="the model has 2 tasks, but there is no column task"):
        given.arguments(model, graphs[0], given.rows())


def test_names_may_contain_colons(trained):
    """Such as labels of an ontology; a pair is read where both of its parts are labels."""
    model = NodeClassifier.load(trained)
    model.label_names_ = ["a:b", "b", "c@d"]
    words = GivenOptions(forbid=["a:b:b", "b:c@d"], prefer=["a:b:2", "a:b:b:3", "c@d:1"])
    assert words.arguments(model, make_graph(1), []) == {
        "forbid": {None: [(0, 1), (1, 2)]},
        "prefer": {0: 2.0, (0, 1): 3.0, 2: 1.0},
    }


def test_explanations(trained, graph, tmp_path):
    result = call("explain", trained, graph, "--node", "n2")
    model, data = model_and_graph(trained, graph)
    e = model.explain(data, "n2")
    assert result.exit_code == 0 and result.stdout == f"{e}\n"
    plain = json.loads(call("explain", trained, graph, "--node", "n2", "--json").stdout)
    assert plain["label_name"] == e.label_name and plain["log_belief"] == pytest.approx(e.log_belief.tolist())
    changed = json.loads(call("explain", trained, graph, "--node", "n2", "--without", "n1", "--json").stdout)
    assert [entry["name"] for entry in changed["messages"]] == ["n3"] and changed["before"]["node"] == 2
    (tmp_path / "known.csv").write_text("node,label\nn1,quince\n")
    given = call("explain", trained, graph, "--node", "n1", "--known", tmp_path / "known.csv").stdout
    assert "No other label is possible" in given
    write_graph(make_graph(302, with_labels=False), tmp_path / "plain.npz")
    assert call("explain", trained, tmp_path / "plain.npz", "--node", "3").stdout.startswith("Node 3: label")


def test_explanations_that_are_refused(trained, graph, data_folder):
    assert "names the node 'n9'" in refused("explain", trained, graph, "--node", "n9")
    assert "is no neighbour of node 'n2'" in refused("explain", trained, graph, "--node", "n2", "--without", "n6")
    assert "holds 6 graphs" in refused("explain", trained, data_folder / "test", "--node", "0")
    assert "task '1' is unknown" in refused("explain", trained, graph, "--node", "n2", "--task", "1")
