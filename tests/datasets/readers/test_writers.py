"""Written graphs are read back unchanged."""

import pytest
import torch
from datasets.readers.graph_files import graph
from torch_geometric.data import Data

from accord.datasets import read_graph, write_graph
from accord.errors import GraphError


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
@pytest.mark.parametrize("y", [None, (0, 1, -1), ((0, 1), (1, -1), (0, 0))])
def test_a_written_graph_is_read_back(tmp_path, name, y):
    before = graph(y, edge_attr=torch.tensor([[0.5], [1.5]]), node_id=torch.tensor([7, 8, 9]))
    write_graph(before, tmp_path / name)
    after = read_graph(tmp_path / name)
    for key in ("x", "edge_index", "edge_attr", "node_id"):
        assert torch.equal(before[key], after[key]), key
    assert after.y is None if y is None else torch.equal(before.y, after.y)
    after.validate(raise_on_error=True)


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
def test_label_names_are_written_and_read_as_sorted_states(tmp_path, name):
    write_graph(graph((0, 2, -1)), tmp_path / name, label_names=["pear", "quince", "apple"])
    after = read_graph(tmp_path / name)
    assert after.label_names == ["apple", "pear"]
    assert after.y.tolist() == [1, 0, -1]
    assert read_graph(tmp_path / name, ["pear", "quince", "apple"]).y.tolist() == [0, 2, -1]
    assert read_graph(tmp_path / name, ["other"], with_labels=False).y is None


def test_writing_needs_a_known_suffix_and_a_complete_graph(tmp_path):
    with pytest.raises(GraphError, match=r"not written to \.gml files"):
        write_graph(graph(), tmp_path / "g.gml")
    with pytest.raises(GraphError, match="no x or no edge_index"):
        write_graph(Data(x=torch.ones(1, 1)), tmp_path / "g.npz")
