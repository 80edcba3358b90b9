"""Graphs as tables: nodes.csv and edges.csv."""

import time

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
    "only empty cells": (
        lambda p: write_tables(p / "g", nodes="id,a\nu,\n", edges="source,target\n"),
        "no column can be used as a feature",
    ),
    "empty id": (lambda p: write_tables(p / "g", nodes="id,a\n,1\n"), "line 2: the id is empty"),
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
    "1_0": (
        lambda p: write_tables(p / "g", nodes="id,a\nu,1\nv,1_0\n", edges="source,target\n"),
        "line 3: column 'a' holds '1_0', which is not",
    ),
    "other digits": (
        lambda p: write_tables(p / "g", nodes="id,a\nu,\u0661\n", edges="source,target\n"),
        "line 2: column 'a' holds",
    ),
    "hexadecimal": (lambda p: write_tables(p / "g", nodes="id,a\nu,0x1p3\n"), "line 2: column 'a' holds '0x1p3'"),
    "nan": (lambda p: write_tables(p / "g", nodes="id,a\nu,NaN\n"), "'NaN', which is not a finite"),
    "infinity": (lambda p: write_tables(p / "g", nodes="id,a\nu,-Infinity\n"), "'-Infinity', which is not a finite"),
    "1e39": (
        lambda p: write_tables(p / "g", nodes="id,a\nu,1e39\n"),
        "line 2: .*'1e39', which is too large for float32",
    ),
    "1_0 as attribute": (lambda p: write_tables(p / "g", edges="source,target,w\nu,v,1_0\n"), "line 2: column 'w'"),
    "1_0 as node_id": (
        lambda p: write_tables(p / "g", nodes="id,node_id,a\nu,1_0,1\n", edges="source,target\n"),
        "line 2: column 'node_id' holds '1_0', but must hold whole",
    ),
    "node_id beyond int64": (
        lambda p: write_tables(p / "g", nodes=f"id,node_id,a\nu,{2**63},1\n", edges="source,target\n"),
        "hold whole numbers of int64",
    ),
    "node_id of 5,000 digits": (
        lambda p: write_tables(p / "g", nodes=f"id,node_id,a\nu,{'9' * 5000},1\n", edges="source,target\n"),
        "hold whole numbers of int64",
    ),
    "NUL": (
        lambda p: write_tables(p / "g", nodes="id,label,a\nu,cat\0,1\n", edges="source,target\n"),
        "line 2: contains a NUL character",
    ),
    "open quote": (
        lambda p: write_tables(p / "g", nodes='id,a,label\nu,1,cat\nv,1,"cat\nw,2,dog\n'),
        "nodes.csv, line 3: .*cannot be read as csv .*Close every quote",
    ),
    "long label": (
        lambda p: write_tables(p / "g", nodes=f"id,label,a\nu,{'c' * 2000},1\n"),
        "line 2: .* 2000 characters",
    ),
    "huge cell": (lambda p: write_tables(p / "g", nodes=f"id,a\nu,{'1' * 200_000}\n"), "line 2: .*field larger"),
    "unnamed column": (lambda p: write_tables(p / "g", nodes=",id,a\n0,u,1\n"), "line 1: column 1 has no name"),
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


def test_text_that_only_python_reads_as_a_number_is_a_name(tmp_path):
    folder = write_tables(tmp_path / "g", "id,label,a\nu,1_0,0\nv,10,0\nw,\u0661,0\n")
    assert read_graph(folder).label_names == ["10", "1_0", "\u0661"]


def test_ends_of_lines_byte_order_marks_and_quoted_newlines(tmp_path):
    folder = write_tables(tmp_path / "g")
    nodes = 'id,label,a\r\n"u\r\nv",cat,1\r\nw,dog, +2.5E-1 \r\n'
    (folder / "nodes.csv").write_bytes(b"\xef\xbb\xbf" + nodes.encode())
    (folder / "edges.csv").write_bytes(b'source,target\r\nw,"u\r\nv"\r\n')
    read = read_graph(folder)
    assert read.node_names == ["u\r\nv", "w"] and read.x.tolist() == [[1], [0.25]]
    assert read.edge_index.tolist() == [[1], [0]]


def test_many_columns_take_linear_time(tmp_path):
    """With a search for each column, this took a minute and a half."""
    names = [f"c{number}" for number in range(50_000)]
    nodes = f"id,{','.join(names)}\nu,{','.join(['0.5'] * len(names))}\n"
    folder = write_tables(tmp_path / "g", nodes, "source,target\n")
    start = time.process_time()
    assert read_graph(folder).feature_names == names
    assert time.process_time() - start < 5
