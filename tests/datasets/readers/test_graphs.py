"""Graphs in .npz and .json files, and folders of graphs."""

import numpy as np
import pytest
import torch
from datasets.readers.graph_files import EDGES, X, write_json, write_npz, write_tables

from accord.datasets import read_graph, read_graphs
from accord.errors import AccordError, DataNotFoundError, GraphError


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


def test_graphs_without_edges(tmp_path):
    write_tables(tmp_path / "t", edges="source,target\n")
    write_npz(tmp_path / "a.npz", edge_index=np.empty((2, 0)))
    write_json(tmp_path / "o.json", edge_index=[])
    for graph_without in read_graphs(tmp_path):
        assert graph_without.edge_index.shape == (2, 0)
        assert graph_without.edge_index.dtype == torch.long


def test_json_labels_may_be_numbers_names_or_null(tmp_path):
    assert read_graph(write_json(tmp_path / "a.json", y=[0, None, 2])).y.tolist() == [0, -1, 2]
    named = read_graph(write_json(tmp_path / "b.json", y=["b", None, "a"]))
    assert (named.y.tolist(), named.label_names) == ([1, -1, 0], ["a", "b"])


def test_a_folder_of_graphs_is_read_in_order_with_common_names(tmp_path):
    write_tables(tmp_path / "b", "id,label,a,b\nu,dog,0,1\n", "source,target\n")
    write_npz(tmp_path / "a.npz", y=np.array(["cat", "", "eel"]))
    (tmp_path / ".hidden").touch()
    graphs = read_graphs(tmp_path)
    assert [g.y.tolist() for g in graphs] == [[0, -1, 2], [1]]
    assert all(g.label_names == ["cat", "dog", "eel"] for g in graphs)


BAD_FILES = {
    "no such file": (lambda p: p / "none.npz", "none.npz: there is no such file"),
    "other suffix": (lambda p: write_json(p / "g.gml", "x"), r"cannot be read from \.gml files.*\.npz, \.json"),
    "a pickle": (lambda p: write_npz(p / "g.npz", y=np.array([1, "a", None], dtype=object)), "plain arrays"),
    "cut short": (lambda p: write_json(p / "g.npz", "PK cut short"), "cannot be read as an .npz"),
    "no edges": (lambda p: write_json(p / "g.json", {"x": X, "edges": []}), "no 'edge_index' .it holds x, edges"),
    "json list": (lambda p: write_json(p / "g.json", []), "holds a list. Write an object"),
    "json broken": (lambda p: write_json(p / "g.json", '{"x":\n [[1, 2\n}'), "line 3: is not valid json"),
    "ragged": (lambda p: write_json(p / "g.json", x=[[1], [1, 2], [3]]), "rows of different lengths"),
    "text feature": (
        lambda p: write_json(p / "g.json", x=[["a"], ["b"], ["c"]]),
        "numbers .nodes, features. are",
    ),
    "nan feature": (lambda p: write_npz(p / "g.npz", x=np.array([[1, np.nan]])), "g.npz: x holds nan"),
    "flat x": (lambda p: write_npz(p / "g.npz", x=np.arange(3.0)), r"x has shape \[3\]"),
    "edge out of range": (lambda p: write_npz(p / "g.npz", edge_index=np.array([[0], [3]])), "names node 3"),
    "list of pairs": (lambda p: write_json(p / "g.json", edge_index=[[0, 1], [1, 2], [0, 2]]), r"with \.t\(\)"),
    "half edges": (lambda p: write_npz(p / "g.npz", edge_index=np.array([[0.5], [1]])), "whole numbers are needed"),
    "bool label": (lambda p: write_json(p / "g.json", y=[0, True, 1]), "node 1: the label True is neither"),
    "half label": (lambda p: write_npz(p / "g.npz", y=np.array([0.5, 1, 2])), "whole numbers are needed"),
    "few labels": (lambda p: write_npz(p / "g.npz", y=np.array([0, 1])), "one entry for each of 3 nodes"),
    "label -2": (lambda p: write_npz(p / "g.npz", y=np.array([0, -2, 1])), "node 1: the label is -2"),
    "huge number": (lambda p: write_json(p / "g.json", y=[0, 1e30, 1]), r"y\[1\] is 1e\+30, too large"),
    "label is an id": (
        lambda p: write_npz(p / "g.npz", y=np.array([0, 10**12, 1])),
        "node 1: the label is 10{12}",
    ),
    "attributes": (lambda p: write_npz(p / "g.npz", edge_attr=np.ones((3, 1))), "one row for each of the 2 columns"),
    "text attributes": (lambda p: write_npz(p / "g.npz", edge_attr=np.array(["a", "b"])), "edge_attr has type"),
    "nan attributes": (lambda p: write_npz(p / "g.npz", edge_attr=np.array([1, np.nan])), "edge_attr holds a NaN"),
    "folder of folders": (lambda p: (p / "g" / "h").mkdir(parents=True) or p / "g", "without nodes.csv"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_the_error_names_the_file_and_the_mistake(tmp_path, case):
    make, message = BAD_FILES[case]
    with pytest.raises(AccordError, match=message) as caught:
        read_graph(make(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(DataNotFoundError, match="the folder is empty. Put graphs into it"):
        read_graphs(tmp_path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1, 0], [0, 1], [0, 0]], r"train_mask holds 2 splits.*train_mask\[:, 0\]"),
        ([1, 0], r"train_mask have shape \[2\], but one entry for each of 3 nodes"),
        ([0, 1, 2], "node 2: train_mask is 2, but 0 or 1"),
        (["a", "b", "c"], "train_mask is a, but 0 or 1"),
    ],
)
def test_masks_that_cannot_be_used_are_refused(tmp_path, value, message):
    with pytest.raises(GraphError, match=message):
        read_graph(write_npz(tmp_path / "g.npz", train_mask=np.array(value)))


def test_a_mask_column_is_not_a_feature(tmp_path):
    folder = write_tables(tmp_path / "t", nodes="id,label,train_mask,a,b\nu,cat,1,0,1\nv,dog,0,2,3\nw,,0,4,5.5\n")
    found = read_graph(folder)
    assert found.feature_names == ["a", "b"] and found.train_mask.tolist() == [True, False, False]
    write_tables(tmp_path / "t", nodes="id,label,train_mask,a,b\nu,cat,yes,0,1\nv,dog,0,2,3\nw,,0,4,5.5\n")
    with pytest.raises(GraphError, match="line 2: column 'train_mask' holds 'yes'"):
        read_graph(folder)
