"""Tables with text, gaps, other names, several graphs, and other forms than csv."""

import gzip
import sys

import numpy as np
import pytest
import torch
from datasets.readers.graph_files import write_tables
from torch_geometric.data import Batch

from accord.datasets import (
    NodeTable,
    TableMapping,
    change_mapping,
    check_folder,
    mapping_from,
    read_folder,
    read_graph,
    read_graphs,
    read_mapping,
    write_graph,
)
from accord.errors import (
    DataNotFoundError,
    GraphError,
    InputTypeError,
    OptionError,
    TooLargeError,
    UnseenCategoriesWarning,
)
from accord.graphs import Columns, GraphBatch, GraphColumns, ego_network

NODES = "id,label,age,colour\nu,cat,1,red\nv,dog,,blue\nw,cat,3,\n"
EDGES = "source,target,kind,weight\nu,v,road,1\nv,w,rail,\n"


def columns_of(graph):
    return dict(zip(graph.feature_names, graph.x.t().tolist(), strict=True))


def test_text_becomes_categories_and_gaps_are_marked(tmp_path):
    read = read_graph(write_tables(tmp_path / "g", NODES, EDGES))
    assert columns_of(read) == {
        "age": [1, 0, 3],
        "age is missing": [0, 1, 0],
        "colour=blue": [0, 1, 0],
        "colour=red": [1, 0, 0],
        "colour is missing": [0, 0, 1],
    }
    assert read.feature_kinds == ["number", "missing", "category", "category", "missing"]
    assert read.node_names == ["u", "v", "w"] and read.label_names == ["cat", "dog"]
    assert read.edge_names == ["kind=rail", "kind=road", "weight", "weight is missing"]
    assert read.edge_attr.tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]


@pytest.mark.parametrize("name", ["g", "g.npz", "g.json"])
def test_such_a_graph_is_written_and_read_back(tmp_path, name):
    read = read_graph(write_tables(tmp_path / "first", NODES, EDGES))
    write_graph(read, tmp_path / name)
    again = read_graph(tmp_path / name)
    for key in ("x", "edge_attr", "edge_index", "y"):
        assert torch.equal(read[key], again[key]), key
    for key in ("feature_names", "feature_kinds", "edge_names", "edge_kinds", "node_names", "label_names"):
        assert read[key] == again[key], key


def test_a_mostly_empty_or_free_text_column_is_left_out(tmp_path):
    rows = "".join(f"n{i},{i % 2},,note {i},{i % 3}\n" for i in range(30))
    folder = write_tables(tmp_path / "g", f"id,label,empty,note,size\n{rows}", "source,target\nn0,n1\n")
    assert read_graph(folder).feature_names == ["size"]
    uses = {use.column: use.use for use in check_folder(folder).findings.columns.values()}
    assert uses["empty"] == "left out: every cell is empty"
    assert uses["note"].startswith("left out: text with 30 different values in 30 rows")
    kept = read_graph(folder, mapping=TableMapping(nodes=NodeTable(categories=("note",))))
    assert len(kept.feature_names) == 31


def test_roles_are_guessed_by_usual_names_and_shown(tmp_path):
    folder = write_tables(tmp_path / "g", "Node,Class,Split,x\na,p,train,1\nb,q,TEST,2\n", "from,to\na,b\n")
    read = read_graph(folder)
    assert (read.node_names, read.label_names, read.feature_names) == (["a", "b"], ["p", "q"], ["x"])
    assert read.train_mask.tolist() == [True, False] and read.test_mask.tolist() == [False, True]
    uses = {use.column: use.use for use in check_folder(folder).findings.columns.values()}
    assert uses["Class"] == "label (guessed)" and uses["from"] == "source of an edge (guessed)"


def test_a_mapping_file_names_what_is_called_otherwise(tmp_path):
    folder = tmp_path / "g"
    folder.mkdir()
    (folder / "people.csv").write_text("name,team,zip,size,note\na,red,012,1,x\nb,blue,12,?,y\n")
    (folder / "ties.csv").write_text("one,two,n\na,b,3\n")
    (folder / "accord.toml").write_text(
        "[nodes]\nfile='people.csv'\nid='name'\nlabel='team'\nignore='note'\ncategories=['zip']\nmissing=['?']\n"
        "[edges]\nfile='ties.csv'\nsource='one'\ntarget='two'\nattributes=[]\n"
    )
    read = read_graph(folder)
    assert read.feature_names == ["zip=012", "zip=12", "size", "size is missing"]
    assert read.label_names == ["blue", "red"] and read.edge_attr is None
    (folder / "accord.toml").rename(tmp_path / "other.toml")
    assert read_graph(folder, mapping=tmp_path / "other.toml").feature_names == read.feature_names
    changed = change_mapping(read_mapping(tmp_path / "other.toml"), ["nodes.ignore=note,zip", "edges.attributes=n"])
    assert read_graph(folder, mapping=changed).edge_names == ["n"]
    assert read_graph(folder, mapping=changed).feature_names == ["size", "size is missing"]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ({"tables": {}}, OptionError, "no section 'tables'. Choose among nodes, edges, features"),
        ({"nodes": []}, InputTypeError, "nodes is a list, not a section"),
        ({"nodes": {"id": 3}}, InputTypeError, r"\[nodes\] id is '3', but a name is needed"),
        ({"edges": {"ignore": [1]}}, InputTypeError, "a list of names is needed"),
        ({"features": {"form": "x"}}, OptionError, "form is 'x'. Choose items or numbers"),
    ],
)
def test_mappings_that_cannot_be_used(content, error, message):
    with pytest.raises(error, match=message):
        mapping_from(content)


def test_lists_of_items_and_of_numbers(tmp_path):
    folder = write_tables(tmp_path / "g", "id,label\nu,a\nv,b\nw,a\n", "source,target\nu,v\n")
    (folder / "words.json").write_text('{"v": [10, 2, 2], "u": ["be", 10]}')
    mapping = mapping_from({"features": {"file": "words.json", "name": "word"}})
    read = read_graph(folder, mapping=mapping)
    assert columns_of(read) == {"word=2": [0, 2, 0], "word=10": [1, 1, 0], "word=be": [1, 0, 0]}
    (folder / "words.json").write_text('{"u": [1, 2.5], "v": [3, 4]}')
    numbers = mapping_from({"features": {"file": "words.json", "name": "v", "form": "numbers"}})
    assert columns_of(read_graph(folder, mapping=numbers)) == {
        "v 0": [1, 3, 0],
        "v 0 is missing": [0, 0, 1],
        "v 1": [2.5, 4, 0],
        "v 1 is missing": [0, 0, 1],
    }


def test_one_table_with_several_graphs(tmp_path):
    nodes = "id,graph,split,label,a\n1,g2,test,p,1\n1,g1,train,q,2\n2,g1,train,p,3\n2,g2,test,q,4\n"
    folder = write_tables(tmp_path / "g", nodes, "graph,source,target\ng1,1,2\ng2,2,1\n")
    first, second = read_graphs(folder)
    assert (first.graph_name, first.x.tolist(), first.edge_index.tolist()) == ("g1", [[2], [3]], [[0], [1]])
    assert (second.graph_name, second.x.tolist(), second.edge_index.tolist()) == ("g2", [[1], [4]], [[1], [0]])
    with pytest.raises(GraphError, match="holds 2 graphs, not one"):
        read_graph(folder)
    bench = read_folder(folder)
    assert (len(bench.train), len(bench.val), len(bench.test)) == (1, 0, 1)
    assert bench.test[0].node_names == ["1", "2"] and "test_mask" not in bench.test[0]


def test_a_graph_by_itself_keeps_its_masks(tmp_path):
    nodes = "id,split,label,a\n1,train,p,1\n2,train,q,2\n3,val,q,3\n4,,p,3\n"
    bench = read_folder(write_tables(tmp_path / "g", nodes, "source,target\n1,2\n"))
    assert len(bench.train) == 1 and not bench.val and not bench.test
    assert bench.train[0].val_mask.tolist() == [False, False, True, False]


def test_compressed_and_parquet_tables_equal_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = read_graph(write_tables(tmp_path / "csv", NODES, EDGES))
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "nodes.csv.gz").write_bytes(gzip.compress(NODES.encode()))
    (packed / "edges.csv").write_text(EDGES)
    stored = tmp_path / "parquet"
    stored.mkdir()
    nodes = {"id": ["u", "v", "w"], "label": ["cat", "dog", "cat"], "age": [1.0, float("nan"), 3.0]}
    colour = pyarrow.array(["red", "blue", None]).dictionary_encode()
    parquet.write_table(pyarrow.table(nodes | {"colour": colour}), stored / "nodes.parquet")
    edges = {"source": ["u", "v"], "target": ["v", "w"], "kind": ["road", "rail"], "weight": [1, None]}
    parquet.write_table(pyarrow.table(edges), stored / "edges.parquet")
    for folder in (packed, stored):
        read = read_graph(folder)
        assert read.feature_names == expected.feature_names and read.edge_names == expected.edge_names
        assert torch.equal(read.x, expected.x) and torch.equal(read.edge_attr, expected.edge_attr)
        assert torch.equal(read.y, expected.y) and read.node_names == expected.node_names


def test_whole_numbers_of_parquet_are_ids_and_booleans_are_numbers(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    nodes = pyarrow.table({"id": [1.0, 2.0], "label": [0, 1], "flag": [True, False], "size": np.float32([0.5, 2])})
    parquet.write_table(nodes, tmp_path / "nodes.parquet")
    parquet.write_table(pyarrow.table({"source": [1], "target": [2]}), tmp_path / "edges.parquet")
    read = read_graph(tmp_path)
    assert read.node_names == ["1", "2"] and read.edge_index.tolist() == [[0], [1]]
    assert read.x.tolist() == [[1, 0.5], [0, 2]]
    parquet.write_table(pyarrow.table({"id": ["a"], "v": [[1.0, 2.0]]}), tmp_path / "nodes.parquet")
    with pytest.raises(GraphError, match="column 'v' has type list.*Turn it into several columns"):
        read_graph(tmp_path)


def test_validation_graphs_have_the_columns_of_training(tmp_path):
    write_tables(tmp_path / "train" / "a", "id,label,c\nu,p,red\nv,q,blue\n", "source,target\n")
    write_tables(tmp_path / "train" / "b", "id,label,c\nu,p,grey\n", "source,target\n")
    write_tables(tmp_path / "val" / "c", "id,label,c\nu,p,pink\nv,q,red\n", "source,target\n")
    with pytest.warns(UnseenCategoriesWarning, match=r"'c' .*'pink' \(at 1\)"):
        bench = read_folder(tmp_path)
    assert bench.feature_names == ["c=blue", "c=red", "c=grey"]
    assert [graph.x.shape[1] for graph in (*bench.train, *bench.val)] == [3, 3, 3]
    assert bench.val[0].x.sum(1).tolist() == [0, 1]


def test_a_model_decides_how_a_column_is_read(tmp_path):
    folder = write_tables(tmp_path / "g", "id,zip,class\nu,12,a\nv,13,b\n", "source,target\nu,v\n")
    columns = Columns(("zip=12", "class=a"), ("category", "category"))
    read = read_graph(folder, columns=GraphColumns(columns), with_labels=False)
    assert read.feature_names == ["zip=12", "zip=13", "class=a", "class=b"]
    assert read_graph(folder, with_labels=False).feature_names == ["zip"], "here `class` is taken for the label"


def test_a_column_of_numbers_in_one_graph_and_text_in_another_is_refused(tmp_path):
    write_tables(tmp_path / "train" / "a", "id,label,c\nu,p,1\nv,q,2\n", "source,target\n")
    write_tables(tmp_path / "train" / "b", "id,label,c\nu,p,one\n", "source,target\n")
    with pytest.raises(GraphError, match="b/nodes.csv: .*'c' holds numbers in one graph and text in another"):
        read_folder(tmp_path)


def test_without_pyarrow_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1")
    (tmp_path / "edges.csv").write_text("source,target\n")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataNotFoundError, match=r"nodes.parquet: .* pip install 'accord\[tables\]'"):
        read_graph(tmp_path)


def test_names_survive_batches_and_ego_networks(tmp_path):
    write_tables(tmp_path / "a", NODES, EDGES)
    write_tables(tmp_path / "b", "id,label,age,colour\nz,cat,1,red\n", "source,target,kind,weight\n")
    graphs = read_graphs(tmp_path)
    assert GraphBatch.collate(graphs).num_nodes == 4
    parts = Batch.from_data_list(graphs).to_data_list()
    assert [part.node_names for part in parts] == [["u", "v", "w"], ["z"]]
    ego = ego_network(graphs[0], 2)
    assert ego.node_names == ["w", "v"] and ego.feature_kinds == graphs[0].feature_kinds


def test_a_compressed_table_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    folder = write_tables(tmp_path / "g", NODES, EDGES)
    (folder / "nodes.csv").unlink()
    (folder / "nodes.csv.gz").write_bytes(gzip.compress(b"id,a\n" + b"9" * 10**7))
    monkeypatch.setattr("accord.datasets._sources.available_memory", lambda device: 10**6)
    with pytest.raises(TooLargeError, match="nodes.csv.gz: reading it needs"):
        read_graph(folder)


def test_a_mapping_file_of_a_data_folder_counts_for_all_its_graphs(tmp_path):
    for split in ("train", "val"):
        write_tables(tmp_path / "data" / split / "a", "key,kind,a\nu,p,1\nv,q,2\n", "source,target\nu,v\n")
    (tmp_path / "data" / "accord.toml").write_text("[nodes]\nlabel='kind'\n")
    (tmp_path / "accord.toml").write_text("[nodes]\nlabel='a'\n")  # above the data folder: not read
    assert read_folder(tmp_path / "data").label_names == ["p", "q"]
    assert read_graphs(tmp_path / "data" / "val")[0].label_names == ["p", "q"]
    assert read_graph(tmp_path / "data" / "val" / "a").label_names == ["p", "q"]


def test_a_parquet_file_whose_columns_differ_in_length_is_refused(tmp_path, monkeypatch):
    """A damaged file may promise another number of rows than a column has."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"id": ["u", "v"], "a": [1, 2]}), tmp_path / "nodes.parquet")
    parquet.write_table(pyarrow.table({"source": ["u"], "target": ["v"]}), tmp_path / "edges.parquet")
    whole = parquet.ParquetFile.read

    def short(file, columns):
        return whole(file, columns).slice(0, 1) if columns == ["a"] else whole(file, columns)

    monkeypatch.setattr(parquet.ParquetFile, "read", short)
    with pytest.raises(GraphError, match="nodes.parquet: .*columns have different lengths"):
        read_graph(tmp_path)
