"""Written graphs are read back unchanged."""

import errno
import os

import pytest
import torch
from datasets.readers.graph_files import graph
from torch_geometric.data import Data

from accord.datasets import read_graph, write_graph
from accord.errors import AccordError, GraphError


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
def test_masks_are_written_and_read_back(tmp_path, name):
    before = graph(
        (0, 1, -1), train_mask=torch.tensor([True, False, False]), test_mask=torch.tensor([False, True, False])
    )
    write_graph(before, tmp_path / name)
    after = read_graph(tmp_path / name)
    assert after.x.shape == before.x.shape and "val_mask" not in after
    for key in ("train_mask", "test_mask"):
        assert after[key].dtype == torch.bool and torch.equal(before[key], after[key])


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
def test_label_names_are_written_and_read_as_sorted_states(tmp_path, name):
    write_graph(graph((0, 2, -1)), tmp_path / name, label_names=["pear", "quince", "apple"])
    after = read_graph(tmp_path / name)
    assert after.label_names == ["apple", "pear"]
    assert after.y.tolist() == [1, 0, -1]
    assert read_graph(tmp_path / name, ["pear", "quince", "apple"]).y.tolist() == [0, 2, -1]
    assert read_graph(tmp_path / name, ["other"], with_labels=False).y is None


@pytest.mark.parametrize(("name", "files"), [("g.npz", 1), ("g.json", 1), ("g", 2)])
def test_a_write_that_is_stopped_leaves_the_file_that_was_there(tmp_path, monkeypatch, name, files):
    write_graph(graph((0, 1, -1)), tmp_path / name)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)  # called when a new file is whole, before it replaces the old one
    with pytest.raises(OSError, match="No space left"):
        write_graph(graph((1, 1, 1)), tmp_path / name)
    assert len(before) == files
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_writing_needs_a_known_suffix_and_a_complete_graph(tmp_path):
    with pytest.raises(GraphError, match=r"not written to \.gml files"):
        write_graph(graph(), tmp_path / "g.gml")
    with pytest.raises(GraphError, match="no x or no edge_index"):
        write_graph(Data(x=torch.ones(1, 1)), tmp_path / "g.npz")


@pytest.mark.parametrize(
    ("broken", "names", "message"),
    [
        (graph((0, -2, 1)), ["a", "b"], "labels run from -2 to 1, but there are 2 label_names"),
        (graph((0, 2, 1)), ["a", "b"], "labels run from 0 to 2, but there are 2 label_names"),
        (graph((0, 1, 1)), ["a", "a\0"], "NUL"),
        (graph((0.5, 1.0, 1.0)), None, "y has dtype torch.float32"),
        (Data(x=torch.ones(3, 1).to_sparse(), edge_index=graph().edge_index), None, "x is a sparse_coo tensor"),
        (Data(x=torch.ones(3, 1, device="meta"), edge_index=graph().edge_index), None, "x is on the meta device"),
    ],
)
def test_writing_refuses_what_could_not_be_read_back(tmp_path, broken, names, message):
    with pytest.raises(AccordError, match=f"write_graph: .*{message}"):
        write_graph(broken, tmp_path / "g.npz", names)
    assert not (tmp_path / "g.npz").exists()


@pytest.mark.parametrize("name", ["g.npz", "g.json", "g"])
def test_attributes_of_no_edges_are_written(tmp_path, name):
    empty = Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long), edge_attr=torch.empty(0, 2))
    write_graph(empty, tmp_path / name)
    assert read_graph(tmp_path / name).edge_attr.shape[0] == 0
