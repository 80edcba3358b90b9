"""Graphs as tables: nodes.csv and edges.csv."""

import numpy as np
import pytest
from datasets.readers.graph_files import write_npz, write_tables

from accord.datasets import read_graph
from accord.errors import AccordError, GraphError


def test_tables_keep_the_names_of_nodes_and_tasks(tmp_path):
    write_tables(
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


def test_labels_written_as_floats_are_states(tmp_path):
    """A spreadsheet with gaps in a column of whole numbers writes 1.0 for 1."""
    folder = write_tables(tmp_path / "g", "id,label,a\n0,1.0,0\n1,,0\n2,0.0,0\n", "source,target\n0,1\n")
    assert read_graph(folder).y.tolist() == [1, -1, 0]


def write_latin_1(folder):
    path = write_tables(folder / "g")
    (path / "nodes.csv").write_bytes(b"id,a\n\xff,1\n")
    return path


BAD_FILES = {
    "huge label": (
        lambda p: write_tables(p / "g", nodes="id,label,a\nu,0,1\nv,1e30,1\n", edges="source,target\n"),
        "nodes.csv, line 3: the label is 1e30, but states are numbered from 0, .*Correct it",
    ),
    "no edges.csv": (lambda p: write_tables(p / "g", edges=None), "has no edges.csv.*source,target"),
    "empty table": (lambda p: write_tables(p / "g", nodes=""), "nodes.csv: is empty. Its first line"),
    "no id": (lambda p: write_tables(p / "g", nodes="a,b\n1,2\n"), "line 1: there is no column id in a, b"),
    "semicolons": (lambda p: write_tables(p / "g", nodes="id;a\n1;2\n"), "separated by ';': use commas"),
    "column twice": (lambda p: write_tables(p / "g", nodes="id,a,a\nu,1,2\n"), "'a' occurs twice"),
    "no features": (lambda p: write_tables(p / "g", nodes="id,label\nu,1\n"), "no feature columns"),
    "short row": (lambda p: write_tables(p / "g", nodes="id,a,b\n\nu,1\n"), "line 3: has 2 cells.*names 3 columns"),
    "text cell": (lambda p: write_tables(p / "g", nodes="id,a,b\nu,1,2\nv,1,NL\n"), "line 3: column 'b' holds 'NL'"),
    "empty cell": (lambda p: write_tables(p / "g", nodes="id,a,b\nu,,2\n"), "line 2: column 'a' is empty"),
    "infinite cell": (lambda p: write_tables(p / "g", nodes="id,a\nu,inf\n"), "'inf', which is not a finite"),
    "id twice": (
        lambda p: write_tables(p / "g", nodes="id,a\nu,1\nu,2\n"),
        "line 3: the id 'u' is already used",
    ),
    "unknown end": (
        lambda p: write_tables(p / "g", edges="source,target\nu,v\nv,z\n"),
        "line 3: target 'z' is not an",
    ),
    "node_id": (
        lambda p: write_tables(p / "g", nodes="id,node_id,a\nu,x,1\n", edges="source,target\n"),
        "hold whole",
    ),
    "latin-1": (
        lambda p: (write_tables(p / "g"), (p / "g/nodes.csv").write_bytes(b"id,a\n\xff,1\n"), p / "g")[2],
        "UTF-8",
    ),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_the_error_names_the_file_and_the_mistake(tmp_path, case):
    make, message = BAD_FILES[case]
    with pytest.raises(AccordError, match=message) as caught:
        read_graph(make(tmp_path))
    assert str(tmp_path) in str(caught.value)


def test_the_error_names_an_unknown_label_and_its_line(tmp_path):
    with pytest.raises(GraphError, match="line 3: the label 'dog' is unknown. Known from training: cat, eel"):
        read_graph(write_tables(tmp_path / "g"), ["cat", "eel"])
    with pytest.raises(GraphError, match="node 2: the label is 3, but there are states 0 to 1"):
        read_graph(write_npz(tmp_path / "g.npz", y=np.array([0, 1, 3])), ["cat", "eel"])
