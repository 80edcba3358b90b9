"""Graphs that torch has saved."""

import pytest
import torch
from datasets.readers.graph_files import graph
from torch_geometric.data import Data, HeteroData

from accord import NodeClassifier
from accord.datasets import from_hetero, read_graph, read_graphs
from accord.errors import AccordError, GraphError, InputTypeError


def test_a_saved_graph_is_read_back(tmp_path):
    before = graph((0, 1, -1), feature_names=["a", "b"], node_names=["u", "v", "w"], label_names=["cat", "dog"])
    before.train_mask = torch.tensor([True, False, False])
    torch.save(before, tmp_path / "g.pt")
    after = read_graph(tmp_path / "g.pt")
    for key in ("x", "edge_index", "y", "train_mask"):
        assert torch.equal(before[key], after[key]), key
    assert (after.feature_names, after.node_names, after.label_names) == (["a", "b"], ["u", "v", "w"], ["cat", "dog"])


def test_reading_leaves_what_torch_may_load_as_it_was(tmp_path):
    torch.save(graph((0, 1, 0)), tmp_path / "g.pt")
    before = set(torch.serialization.get_safe_globals())
    read_graph(tmp_path / "g.pt")
    assert set(torch.serialization.get_safe_globals()) == before
    assert {Data, HeteroData} <= before, "PyG's own data sets need what PyG has registered"


def test_a_list_of_graphs_and_labels_of_one_column(tmp_path):
    torch.save([graph(((0,), (1,), (1,))), graph((1, 1, 0))], tmp_path / "g.pt")
    first, second = read_graphs(tmp_path / "g.pt")
    assert first.y.tolist() == [0, 1, 1] and second.y.tolist() == [1, 1, 0]
    assert [first.graph_name, second.graph_name] == ["g.pt 0", "g.pt 1"]


def heterogeneous():
    data = HeteroData()
    data["page"].x, data["page"].y = torch.eye(3), torch.tensor([0, 1, 0])
    data["page", "links", "page"].edge_index = torch.tensor([[0, 1], [1, 2]])
    data["page", "likes", "page"].edge_index = torch.tensor([[2], [0]])
    return data


def test_edge_types_become_edge_attributes(tmp_path):
    torch.save(heterogeneous(), tmp_path / "g.pt")
    read = read_graph(tmp_path / "g.pt")
    assert torch.equal(read.edge_attr, from_hetero(heterogeneous()).edge_attr)
    with pytest.raises(InputTypeError, match=r"got a HeteroData. Convert it with accord.datasets.from_hetero"):
        NodeClassifier().fit([heterogeneous()])
    with pytest.raises(InputTypeError, match="from_hetero: got a Data"):
        from_hetero(read)
    assert read.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]
    assert read.edge_names == ["type=links", "type=likes"] and read.edge_kinds == ["category", "category"]
    assert read.edge_attr.tolist() == [[1, 0], [1, 0], [0, 1]] and read.y.tolist() == [0, 1, 0]


def test_attributes_of_edge_types_go_along_if_they_are_alike(tmp_path):
    data = heterogeneous()
    data["page", "links", "page"].edge_attr = torch.tensor([[0.5], [1.5]])
    torch.save(data, tmp_path / "g.pt")
    with pytest.raises(GraphError, match="edge_attr of different widths"):
        read_graph(tmp_path / "g.pt")
    data["page", "likes", "page"].edge_attr = torch.tensor([2.5])
    torch.save(data, tmp_path / "g.pt")
    read = read_graph(tmp_path / "g.pt")
    assert read.edge_names == ["type=links", "type=likes", "a0"]
    assert read.edge_attr.tolist() == [[1, 0, 0.5], [1, 0, 1.5], [0, 1, 2.5]]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Data(x=torch.ones(1, 1).expand(10**12, 1), edge_index=torch.tensor([[0], [0]])), "GB of memory"),
        (Data(x=torch.ones(3, 1).to_sparse(), edge_index=torch.tensor([[0], [1]])), "a dense tensor is needed"),
        (Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [7]])), "names node 7"),
        (Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0.5, 1.0])), "whole numbers"),
        (Data(x="text", edge_index=torch.tensor([[0], [1]])), "x is a str"),
        (graph((0, 1, 1), label_names=["a"]), "label_names do not fit"),
    ],
)
def test_saved_graphs_that_cannot_be_used(tmp_path, broken, message):
    torch.save(broken, tmp_path / "g.pt")
    with pytest.raises(AccordError, match=f"g.pt: .*{message}"):
        read_graph(tmp_path / "g.pt")
