"""Batches of graphs."""

import pytest
import torch
from torch_geometric.data import Batch, Data

from accord.errors import GraphError, InputTypeError
from accord.graphs import GraphBatch


def graph(nodes=3, edges=((0, 1), (1, 0), (1, 2)), y=True, attributes=None, features=2):
    return Data(
        x=torch.arange(nodes * features, dtype=torch.float32).view(nodes, features),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t(),
        y=torch.arange(nodes) if y is True else y,
        edge_attr=attributes,
    )


def test_one_graph():
    batch = GraphBatch.collate([graph()])
    assert (batch.num_graphs, batch.num_nodes, batch.num_edges, batch.num_features) == (1, 3, 2, 2)
    assert batch.topology.edge_index.tolist() == [[0, 1], [1, 2]]
    assert batch.y.tolist() == [0, 1, 2]
    assert batch.edge_attr is None and batch.num_edge_attributes == 0


def test_many_graphs_side_by_side():
    batch = GraphBatch.collate([graph(), graph(1, ()), graph(2, ((1, 0),))] * 700)
    assert (batch.num_graphs, batch.num_nodes, batch.num_edges) == (2100, 4200, 2100)
    assert batch.topology.graph[:8].tolist() == [0, 0, 0, 1, 2, 2, 3, 3]
    assert batch.topology.edge_index[:, :5].tolist() == [[0, 1, 5, 6, 7], [1, 2, 4, 7, 8]]


def test_a_pyg_batch_counts_as_its_graphs():
    parts = [graph(), graph(2, ((0, 1),))]
    batch = GraphBatch.collate([Batch.from_data_list(parts), graph()])
    assert batch.num_graphs == 3
    assert torch.equal(batch.topology.edge_index, GraphBatch.collate([*parts, graph()]).topology.edge_index)


def test_missing_labels():
    assert GraphBatch.collate([graph(y=None)]).y is None
    assert not GraphBatch.collate([graph(y=None)]).labelled_nodes.any()
    some = GraphBatch.collate([graph(y=None), graph(y=torch.tensor([2, -1, 0], dtype=torch.int32))])
    assert some.y.tolist() == [-1, -1, -1, 2, -1, 0] and some.y.dtype == torch.long
    assert some.labelled_nodes.tolist() == [False, False, False, True, False, True]
    assert some.labelled_edges.tolist() == [False] * 4
    tasks = GraphBatch.collate([graph(y=None), graph(y=torch.zeros(3, 5, dtype=torch.long))])
    assert tasks.y.shape == (6, 5) and tasks.labelled_edges.shape == (4, 5)
    assert tasks.labelled_edges[:, 0].tolist() == [False, False, True, True]


def test_edge_attributes_follow_their_edges():
    first = graph(attributes=torch.tensor([[1.0], [9.0], [2.0]]))
    batch = GraphBatch.collate([first, graph(2, ()), graph(2, ((1, 0), (1, 1)), attributes=torch.tensor([3, 4]))])
    assert batch.edge_attr.tolist() == [[1.0], [2.0], [3.0]]
    assert batch.edge_attr.dtype == torch.float32


def test_no_edge_index_means_no_edges():
    batch = GraphBatch.collate([Data(x=torch.ones(2, 3)), graph(features=3)])
    assert batch.topology.edge_index.tolist() == [[2, 3], [3, 4]]


def test_to_another_precision_and_back():
    batch = GraphBatch.collate([graph(attributes=torch.ones(3, 1))])
    assert batch.to("cpu") is batch
    double = batch.to(dtype=torch.float64)
    assert double.x.dtype == double.edge_attr.dtype == torch.float64
    assert torch.equal(double.y, batch.y) and torch.equal(double.topology.edge_index, batch.topology.edge_index)


def test_cached_values_are_computed_once():
    batch, made = GraphBatch.collate([graph()]), []

    def build():
        made.append(1)
        return object()

    assert batch.cached("a", build) is batch.cached("a", build)
    batch.cached("b", build)
    assert len(made) == 2
    assert batch.to(dtype=torch.float64).cached("a", lambda: 5) == 5


def bad_x(value):
    broken = graph()
    broken.x = value
    return broken


@pytest.mark.parametrize(
    "graphs, kind, message",
    [
        ([], GraphError, "empty"),
        (graph(), InputTypeError, "into a list"),
        ([graph(), 3], InputTypeError, "graph 1 is a int"),
        ([graph(), Data(edge_index=torch.zeros(2, 0, dtype=torch.long))], GraphError, "graph 1 has no node features"),
        ([graph(), bad_x(torch.ones(3, 2, dtype=torch.long))], InputTypeError, r"graph 1 .*\.float\(\)"),
        ([graph(), graph(features=3)], GraphError, r"graph 1 has shape \[3, 3\], but \[nodes, 2\]"),
        ([bad_x(torch.ones(3))], GraphError, r"graph 0 has shape \[3\]"),
        ([graph(), bad_x(torch.tensor([[0.0, 1], [0, 1], [0, torch.nan]]))], GraphError, "graph 1 .*node 2"),
        ([graph(), graph(3, ((0, 3),)), graph()], GraphError, r"graph 1's edge_index is \[0, 3\].* 3 nodes"),
        ([graph(), graph(3, ((-1, 0),))], GraphError, "graph 1"),
        ([graph(y=torch.zeros(3))], InputTypeError, r"graph 0: y .*\.long\(\)"),
        ([graph(), graph(y=torch.zeros(2, dtype=torch.long))], GraphError, r"y of graph 1 has shape \[2\], but \[3\]"),
        ([graph(), graph(y=torch.zeros(3, 2, dtype=torch.long))], GraphError, "y of graph 1"),
        ([graph(), graph(y=torch.tensor([0, -2, 1]))], GraphError, "y of graph 1 is -2 at node 1"),
        ([graph(attributes=torch.ones(3, 1)), graph()], GraphError, "graph 1 has edges without edge_attr"),
        ([graph(attributes=torch.ones(2, 1))], GraphError, "edge_attr of graph 0"),
        (
            [graph(), bad_x(torch.ones(3, 2).to_sparse())],
            InputTypeError,
            "graph 1: x is a sparse_coo tensor",
        ),
        ([bad_x(torch.ones(3, 2, device="meta"))], InputTypeError, "graph 0: x is on the meta device"),
        (
            [graph(attributes=torch.tensor([[1.0], [1e39], [2.0]], dtype=torch.float64))],
            GraphError,
            r"edge_attr of graph 0 holds 1e\+39 in row 1, column 0, which is too large for torch.float32",
        ),
        ([Batch(x=torch.ones(3, 2))], GraphError, "graph 0 is a Batch that does not know"),
        ([graph(attributes=torch.full((3, 1), torch.inf))], GraphError, "edge_attr of graph 0 has a NaN"),
    ],
)
def test_graphs_that_do_not_fit_together_are_refused(graphs, kind, message):
    with pytest.raises(kind, match=message):
        GraphBatch.collate(graphs)


def test_features_that_another_precision_cannot_hold_are_refused():
    batch = GraphBatch.collate([bad_x(torch.tensor([[1, 2], [3, -1e39], [5, 6]], dtype=torch.float64))])
    with pytest.raises(GraphError, match=r"GraphBatch.to: x holds -1e\+39 in row 1, column 1, .* torch.float32"):
        batch.to(dtype=torch.float32)
