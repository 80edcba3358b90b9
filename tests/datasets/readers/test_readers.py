import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from accord.datasets import read_folder, read_graph, read_graphs, write_graph
from accord.errors import AccordError, DataNotFoundError, GraphError

X = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.5]]
EDGES = [[0, 1], [1, 2]]


def graph(y=(0, 1, -1), **more):
    return Data(x=torch.tensor(X), edge_index=torch.tensor(EDGES), y=None if y is None else torch.tensor(y), **more)


def tables(folder, nodes="id,label,a,b\nu,cat,0,1\nv,dog,2,3\nw,,4,5.5\n", edges="source,target\nu,v\nv,w\n"):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nodes.csv").write_text(nodes)
    if edges is not None:
        (folder / "edges.csv").write_text(edges)
    return folder


def arrays(path, **more):
    np.savez(path, **({"x": np.array(X), "edge_index": np.array(EDGES)} | more))
    return path


def objects(path, content=None, **more):
    content = {"x": X, "edge_index": EDGES} | more if content is None else content
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
@pytest.mark.parametrize("y", [None, (0, 1, -1), ((0, 1), (1, -1), (0, 0))])
def test_what_is_written_is_read_again(tmp_path, name, y):
    before = graph(y, edge_attr=torch.tensor([[0.5], [1.5]]), node_id=torch.tensor([7, 8, 9]))
    write_graph(before, tmp_path / name)
    after = read_graph(tmp_path / name)
    for key in ("x", "edge_index", "edge_attr", "node_id"):
        assert torch.equal(before[key], after[key]), key
    assert after.y is None if y is None else torch.equal(before.y, after.y)
    after.validate(raise_on_error=True)


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
def test_names_are_written_and_read_as_sorted_states(tmp_path, name):
    write_graph(graph((0, 2, -1)), tmp_path / name, label_names=["pear", "quince", "apple"])
    after = read_graph(tmp_path / name)
    assert after.label_names == ["apple", "pear"]
    assert after.y.tolist() == [1, 0, -1]
    assert read_graph(tmp_path / name, ["pear", "quince", "apple"]).y.tolist() == [0, 2, -1]
    assert read_graph(tmp_path / name, ["other"], with_labels=False).y is None


def test_sparse_features(tmp_path):
    path = tmp_path / "g.npz"
    parts = {"x_indptr": [0, 1, 1, 3], "x_indices": [1, 0, 1], "x_shape": [3, 2], "edge_index": EDGES}
    np.savez(path, **{name: np.array(value) for name, value in parts.items()})
    assert read_graph(path).x.tolist() == [[0, 1], [0, 0], [1, 1]]
    np.savez(path, **{name: np.array(value) for name, value in parts.items()}, x_data=np.array([2.5, 3, 4]))
    assert read_graph(path).x.tolist() == [[0, 2.5], [0, 0], [3, 4]]
    np.savez(path, **{name: np.array(value) for name, value in (parts | {"x_indices": [1, 0, 2]}).items()})
    with pytest.raises(GraphError, match="do not make a sparse matrix"):
        read_graph(path)


def test_tables_keep_the_names_of_nodes_and_tasks(tmp_path):
    tables(
        tmp_path / "g",
        "id,label_new,label_old,a\nu,0,1,0.5\nv,1,,1e3\n",
        "source,target,weight\nv,u,0.25\n",
    )
    read = read_graph(tmp_path / "g")
    assert read.y.tolist() == [[0, 1], [1, -1]]
    assert read.task_names == ["new", "old"]
    assert read.node_names == ["u", "v"]
    assert read.edge_index.tolist() == [[1], [0]]
    assert read.edge_attr.tolist() == [[0.25]]


def test_graphs_without_edges(tmp_path):
    tables(tmp_path / "t", edges="source,target\n")
    arrays(tmp_path / "a.npz", edge_index=np.empty((2, 0)))
    objects(tmp_path / "o.json", edge_index=[])
    for graph_without in read_graphs(tmp_path):
        assert graph_without.edge_index.shape == (2, 0)
        assert graph_without.edge_index.dtype == torch.long


def test_json_labels_may_be_numbers_names_or_null(tmp_path):
    assert read_graph(objects(tmp_path / "a.json", y=[0, None, 2])).y.tolist() == [0, -1, 2]
    named = read_graph(objects(tmp_path / "b.json", y=["b", None, "a"]))
    assert (named.y.tolist(), named.label_names) == ([1, -1, 0], ["a", "b"])


def test_labels_written_as_floats_are_states(tmp_path):
    """A spreadsheet with gaps in a column of whole numbers writes 1.0 for 1."""
    folder = tables(tmp_path / "g", "id,label,a\n0,1.0,0\n1,,0\n2,0.0,0\n", "source,target\n0,1\n")
    assert read_graph(folder).y.tolist() == [1, -1, 0]


def test_a_folder_of_graphs_is_read_in_order_with_common_names(tmp_path):
    tables(tmp_path / "b", "id,label,a,b\nu,dog,0,1\n", "source,target\n")
    arrays(tmp_path / "a.npz", y=np.array(["cat", "", "eel"]))
    (tmp_path / ".hidden").touch()
    graphs = read_graphs(tmp_path)
    assert [g.y.tolist() for g in graphs] == [[0, -1, 2], [1]]
    assert all(g.label_names == ["cat", "dog", "eel"] for g in graphs)


BAD_FILES = {
    "no such file": (lambda p: p / "none.npz", "none.npz: there is no such file"),
    "other suffix": (lambda p: objects(p / "g.gml", "x"), r"cannot be read from \.gml files.*\.npz, \.json"),
    "a pickle": (lambda p: arrays(p / "g.npz", y=np.array([1, "a", None], dtype=object)), "plain arrays"),
    "cut short": (lambda p: objects(p / "g.npz", "PK cut short"), "cannot be read as an .npz"),
    "no edges": (lambda p: objects(p / "g.json", {"x": X, "edges": []}), "no 'edge_index' .it holds x, edges"),
    "json list": (lambda p: objects(p / "g.json", []), "holds a list. Write an object"),
    "json broken": (lambda p: objects(p / "g.json", '{"x":\n [[1, 2\n}'), "line 3: is not valid json"),
    "ragged": (lambda p: objects(p / "g.json", x=[[1], [1, 2], [3]]), "rows of different lengths"),
    "text feature": (lambda p: objects(p / "g.json", x=[["a"], ["b"], ["c"]]), "numbers .nodes, features. are needed"),
    "nan feature": (lambda p: arrays(p / "g.npz", x=np.array([[1, np.nan]])), "g.npz: x holds nan"),
    "flat x": (lambda p: arrays(p / "g.npz", x=np.arange(3.0)), r"x has shape \[3\]"),
    "edge out of range": (lambda p: arrays(p / "g.npz", edge_index=np.array([[0], [3]])), "names node 3"),
    "list of pairs": (lambda p: objects(p / "g.json", edge_index=[[0, 1], [1, 2], [0, 2]]), r"wants \.t\(\)"),
    "half edges": (lambda p: arrays(p / "g.npz", edge_index=np.array([[0.5], [1]])), "whole numbers are needed"),
    "bool label": (lambda p: objects(p / "g.json", y=[0, True, 1]), "node 1: the label True is neither"),
    "half label": (lambda p: arrays(p / "g.npz", y=np.array([0.5, 1, 2])), "whole numbers are needed"),
    "few labels": (lambda p: arrays(p / "g.npz", y=np.array([0, 1])), "one entry for each of 3 nodes"),
    "label -2": (lambda p: arrays(p / "g.npz", y=np.array([0, -2, 1])), "node 1: the label is -2"),
    "huge label": (
        lambda p: tables(p / "g", nodes="id,label,a\nu,0,1\nv,1e30,1\n", edges="source,target\n"),
        "nodes.csv, line 3: the label is 1e30, but states are numbered from 0, .*Correct it",
    ),
    "huge number": (lambda p: objects(p / "g.json", y=[0, 1e30, 1]), "node 1: the label is [1-9]"),
    "label is an id": (lambda p: arrays(p / "g.npz", y=np.array([0, 10**12, 1])), "node 1: the label is 1000000000000"),
    "attributes": (lambda p: arrays(p / "g.npz", edge_attr=np.ones((3, 1))), "one row for each of the 2 columns"),
    "text attributes": (lambda p: arrays(p / "g.npz", edge_attr=np.array(["a", "b"])), "edge_attr has type"),
    "nan attributes": (lambda p: arrays(p / "g.npz", edge_attr=np.array([1, np.nan])), "edge_attr holds a NaN"),
    "no edges.csv": (lambda p: tables(p / "g", edges=None), "has no edges.csv.*source,target"),
    "empty table": (lambda p: tables(p / "g", nodes=""), "nodes.csv: is empty. Its first line"),
    "no id": (lambda p: tables(p / "g", nodes="a,b\n1,2\n"), "line 1: there is no column id in a, b"),
    "semicolons": (lambda p: tables(p / "g", nodes="id;a\n1;2\n"), "divided by ';': use commas"),
    "column twice": (lambda p: tables(p / "g", nodes="id,a,a\nu,1,2\n"), "'a' occurs twice"),
    "no features": (lambda p: tables(p / "g", nodes="id,label\nu,1\n"), "no feature columns"),
    "short row": (lambda p: tables(p / "g", nodes="id,a,b\n\nu,1\n"), "line 3: has 2 cells.*names 3 columns"),
    "text cell": (lambda p: tables(p / "g", nodes="id,a,b\nu,1,2\nv,1,NL\n"), "line 3: column 'b' holds 'NL'"),
    "empty cell": (lambda p: tables(p / "g", nodes="id,a,b\nu,,2\n"), "line 2: column 'a' is empty"),
    "infinite cell": (lambda p: tables(p / "g", nodes="id,a\nu,inf\n"), "'inf', which is not a finite"),
    "id twice": (lambda p: tables(p / "g", nodes="id,a\nu,1\nu,2\n"), "line 3: the id 'u' is taken already by line 2"),
    "unknown end": (lambda p: tables(p / "g", edges="source,target\nu,v\nv,z\n"), "line 3: target 'z' is no id"),
    "node_id": (lambda p: tables(p / "g", nodes="id,node_id,a\nu,x,1\n", edges="source,target\n"), "must hold whole"),
    "latin-1": (lambda p: (tables(p / "g"), (p / "g/nodes.csv").write_bytes(b"id,a\n\xff,1\n"), p / "g")[2], "UTF-8"),
    "folder of folders": (lambda p: (p / "g" / "h").mkdir(parents=True) or p / "g", "without nodes.csv"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_every_bad_file_is_told_what_is_wrong_and_where(tmp_path, case):
    make, message = BAD_FILES[case]
    with pytest.raises(AccordError, match=message) as caught:
        read_graph(make(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_an_unknown_label_is_named_with_its_line(tmp_path):
    with pytest.raises(GraphError, match="line 3: the label 'dog' is unknown. Known from training: cat, eel"):
        read_graph(tables(tmp_path / "g"), ["cat", "eel"])
    with pytest.raises(GraphError, match="node 2: the label is 3, but there are states 0 to 1"):
        read_graph(arrays(tmp_path / "g.npz", y=np.array([0, 1, 3])), ["cat", "eel"])


def test_an_empty_folder_says_so(tmp_path):
    with pytest.raises(DataNotFoundError, match="the folder is empty. Put graphs into it"):
        read_graphs(tmp_path)


def test_writing_needs_a_form_and_a_graph(tmp_path):
    with pytest.raises(GraphError, match=r"not written to \.gml files"):
        write_graph(graph(), tmp_path / "g.gml")
    with pytest.raises(GraphError, match="no x or no edge_index"):
        write_graph(Data(x=torch.ones(1, 1)), tmp_path / "g.npz")


def test_a_data_folder(tmp_path):
    tables(tmp_path / "train" / "one")
    tables(tmp_path / "train" / "two", "id,label,a,b\nu,eel,0,1\n", "source,target\n")
    tables(tmp_path / "test" / "three", "id,label,a,b\nu,eel,0,1\n", "source,target\n")
    bench = read_folder(tmp_path)
    assert (len(bench.train), len(bench.val), len(bench.test)) == (2, 0, 1)
    assert bench.label_names == ["cat", "dog", "eel"]
    assert (bench.num_states, bench.num_tasks, bench.num_features, bench.level) == (3, 1, 2, "node")
    assert bench.test[0].y.tolist() == [2]
    assert "train=2" in repr(bench)


def test_states_of_a_data_folder_are_those_of_training_and_validation(tmp_path):
    for split, highest in (("train", 1), ("val", 3)):
        (tmp_path / split).mkdir()
        arrays(tmp_path / split / "g.npz", y=np.array([0, highest, -1]))
    assert read_folder(tmp_path).num_states == 4
    assert read_folder(tmp_path).label_names is None


def test_what_a_data_folder_may_lack_is_said(tmp_path):
    with pytest.raises(DataNotFoundError, match="no such folder"):
        read_folder(tmp_path / "none")
    with pytest.raises(DataNotFoundError, match="has no folder train/"):
        read_folder(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(DataNotFoundError, match="train: the folder is empty"):
        read_folder(tmp_path)
    arrays(tmp_path / "train" / "g.npz")
    with pytest.raises(GraphError, match="has labels. Add a column `label`"):
        read_folder(tmp_path)


def test_graphs_of_a_data_folder_are_alike(tmp_path):
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
    arrays(tmp_path / "train" / "a.npz", y=np.array([0, 1, 1]))
    arrays(tmp_path / "test" / "b.npz", x=np.ones((3, 5)))
    with pytest.raises(GraphError, match="b.npz: has 5 features a node, but .*a.npz has 2"):
        read_folder(tmp_path)
    arrays(tmp_path / "test" / "b.npz", y=np.ones((3, 2), dtype=int))
    with pytest.raises(GraphError, match="b.npz: has 2 labels a node"):
        read_folder(tmp_path)


def test_a_name_that_training_never_saw_is_refused_at_once(tmp_path):
    tables(tmp_path / "train" / "one")
    tables(tmp_path / "val" / "two", "id,label,a,b\nu,eel,0,1\n", "source,target\n")
    with pytest.raises(GraphError, match="line 2: the label 'eel' is unknown. Known from training: cat, dog"):
        read_folder(tmp_path)
