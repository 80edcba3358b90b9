"""Feature names travel from a file's header to the graph, and back into files."""

import copy
import shutil

import numpy as np
import pytest
import torch
from datasets.readers.graph_files import graph, write_json, write_npz, write_tables
from torch_geometric.data import Batch, Data

from accord.datasets import read_folder, read_graph, read_graphs, write_graph
from accord.errors import GraphError
from accord.graphs import GraphBatch, ego_network

NAMES = ["age", "income"]


def test_a_table_names_its_features(tmp_path):
    nodes = "id, b ,label,node_id,a\nu,1,cat,7,2\n"
    read = read_graph(write_tables(tmp_path / "g", nodes, "source,target\n"))
    assert read.feature_names == ["b", "a"]
    assert read.x.tolist() == [[1, 2]]
    assert read_graph(tmp_path / "g", with_labels=False).feature_names == ["b", "a"]
    assert [part.feature_names for part in read_graphs(tmp_path)] == [["b", "a"]]


def test_npz_and_json_may_name_their_features(tmp_path):
    assert "feature_names" not in read_graph(write_npz(tmp_path / "g.npz"))
    assert "feature_names" not in read_graph(write_json(tmp_path / "g.json"))
    assert read_graph(write_npz(tmp_path / "g.npz", feature_names=np.array(NAMES))).feature_names == NAMES
    assert read_graph(write_json(tmp_path / "g.json", feature_names=NAMES)).feature_names == NAMES
    assert "feature_names" not in read_graph(write_json(tmp_path / "g.json", feature_names=None))


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
def test_written_names_are_read_again(tmp_path, name):
    write_graph(graph(feature_names=NAMES), tmp_path / name)
    assert read_graph(tmp_path / name).feature_names == NAMES


@pytest.mark.parametrize("name", ["g.npz", "g.json"])
def test_a_graph_without_names_is_written_without_names(tmp_path, name):
    write_graph(graph(), tmp_path / name)
    assert "feature_names" not in read_graph(tmp_path / name)


BAD_NAMES = {
    "too few": (["age"], "1 feature_names for 2 features"),
    "repeated": (["age", "age"], "'age' occurs twice"),
    "numbers": ([1, 2], "feature_names must be a list of strings"),
    "nested": ([["age"], ["income"]], "feature_names must be a list of strings"),
}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_bad_names_are_refused(tmp_path, case):
    names, message = BAD_NAMES[case]
    for path in (
        write_json(tmp_path / "g.json", feature_names=names),
        write_npz(tmp_path / "g.npz", feature_names=np.array(names)),
    ):
        with pytest.raises(GraphError, match=f"{path.name}: .*{message}"):
            read_graph(path)
    with pytest.raises(GraphError, match=f"write_graph: .*{message}"):
        write_graph(graph(feature_names=names), tmp_path / "out.npz")


def test_a_json_string_is_no_list_of_names(tmp_path):
    with pytest.raises(GraphError, match="g.json: feature_names must be a list of strings"):
        read_graph(write_json(tmp_path / "g.json", feature_names="ab"))


@pytest.mark.parametrize("name", ["id", "node_id", "label", "label_new"])
def test_tables_refuse_feature_names_that_they_would_not_read_back(tmp_path, name):
    with pytest.raises(GraphError, match=f"'{name}' is the name of another column"):
        write_graph(graph(feature_names=["a", name]), tmp_path / "g")
    assert not (tmp_path / "g").exists()


def test_a_data_folder_has_one_list_of_names(tmp_path):
    write_tables(tmp_path / "train" / "one")
    write_npz(tmp_path / "train" / "two.npz", y=np.array(["cat", "dog", ""]))  # without names: matched by position
    write_tables(tmp_path / "test" / "three")
    bench = read_folder(tmp_path)
    assert bench.feature_names == ["a", "b"]
    shutil.rmtree(tmp_path / "train" / "one")
    shutil.rmtree(tmp_path / "test")
    assert read_folder(tmp_path).feature_names is None


@pytest.mark.parametrize("header", ["b,a", "a,c"])
def test_a_data_folder_refuses_features_of_another_name_or_order(tmp_path, header):
    (tmp_path / "train").mkdir()
    write_npz(tmp_path / "train" / "a.npz", y=np.array(["cat", "dog", ""]))
    write_tables(tmp_path / "train" / "b")
    write_tables(tmp_path / "val" / "c", f"id,label,{header}\nu,cat,0,1\n", "source,target\n")
    with pytest.raises(
        GraphError, match=r"val/c/nodes.csv: .* of .*train/b/nodes.csv: column \d is '\w' here and '\w'"
    ):
        read_folder(tmp_path)


def named_graph():
    """As many names as nodes: PyG takes such a list for one entry per node."""
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return Data(x=torch.eye(3), edge_index=edge_index, y=torch.tensor([0, 1, 0]), feature_names=["a", "b", "c"])


def test_names_survive_copies_and_ego_networks():
    named = named_graph()
    for same in (named.clone(), copy.copy(named), copy.deepcopy(named), named.to("cpu"), ego_network(named, 0)):
        assert same.feature_names == ["a", "b", "c"]
    assert "feature_names" not in ego_network(Data(x=named.x, edge_index=named.edge_index), 0)


def test_graphs_with_names_are_batched():
    named = named_graph()
    together = GraphBatch.collate([named, named])
    assert torch.equal(together.x, torch.cat([named.x, named.x]))
    batch = Batch.from_data_list([named, named])
    assert [part.feature_names for part in batch.to_data_list()] == [["a", "b", "c"]] * 2
    nested = GraphBatch.collate([batch, named])
    assert nested.num_graphs == 3
