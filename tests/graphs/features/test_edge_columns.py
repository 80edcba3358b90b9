"""Edge columns: means and sums of edge attributes at each node, the same however edges are stored."""

import pytest
import torch
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.graphs import fit_edge_columns
from accord.graphs.features._edge_columns import edge_aggregates

EDGES = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 3]])
ATTRIBUTES = torch.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [5.0, 50.0]])


def graph(edges=EDGES, attributes=ATTRIBUTES, nodes=5):
    return Data(x=torch.arange(nodes)[:, None].float(), edge_index=edges, edge_attr=attributes)


def test_means_and_sums_over_all_edges_of_a_node():
    found = edge_aggregates(graph(), 2, directed=False)
    assert found.shape == (5, 4)
    assert found[0].tolist() == [3.0, 30.0, 9.0, 90.0]  # edges 1, 3 and 5
    assert found[1].tolist() == [1.5, 15.0, 3.0, 30.0]
    assert found[4].tolist() == [0.0] * 4, "a node without edges"


def test_edges_that_leave_and_edges_that_enter_are_told_apart():
    found = edge_aggregates(graph(), 2, directed=True)
    assert found[0].tolist() == [3.0, 30.0, 3.0, 30.0, 6.0, 60.0, 3.0, 30.0]  # leaving 1 and 5, entering 3
    assert found[3].tolist() == [0.0, 0.0, 5.0, 50.0, 0.0, 0.0, 5.0, 50.0]


def test_repeats_self_loops_and_the_second_direction_change_nothing():
    more = torch.cat([EDGES, EDGES.flip(0), EDGES[:, :2], torch.tensor([[2], [2]])], 1)
    values = torch.cat([ATTRIBUTES, ATTRIBUTES, ATTRIBUTES[:2], torch.tensor([[9.0, 9.0]])])
    expected = edge_aggregates(graph(), 2, directed=False)
    torch.testing.assert_close(edge_aggregates(graph(more, values), 2, directed=False), expected)
    once = edge_aggregates(graph(more[:, [0, 1, 2, 3, 8, 9, 10]], values[[0, 1, 2, 3, 8, 9, 10]]), 2, directed=True)
    torch.testing.assert_close(once, edge_aggregates(graph(), 2, directed=True))


def test_attributes_that_differ_by_direction_are_averaged_or_kept_apart():
    both = graph(torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 6.0]), nodes=2)
    assert edge_aggregates(both, 1, directed=False).tolist() == [[4.0, 4.0]] * 2
    assert edge_aggregates(both, 1, directed=True).tolist() == [[2.0, 6.0, 2.0, 6.0], [6.0, 2.0, 6.0, 2.0]]


def test_columns_are_standardised_by_the_training_nodes():
    masked = graph()
    masked.train_mask = torch.tensor([True, True, True, True, False])
    columns = fit_edge_columns([masked], 2, directed=False)
    found = columns.apply(masked).x
    assert found.shape == (5, 5) and torch.equal(found[:, :1], masked.x), "after the features"
    torch.testing.assert_close(found[:4, 1:].mean(0), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(found[:4, 1:].std(0, correction=0), torch.ones(4))
    assert masked.x.shape == (5, 1), "the given graph stays as it is"
    constant = fit_edge_columns([graph(attributes=torch.ones(4))], 1, directed=True)
    assert bool(constant.apply(graph(attributes=torch.ones(4))).x.isfinite().all())


def test_graphs_without_edges_have_zeros_and_missing_attributes_are_refused():
    columns = fit_edge_columns([graph()], 2, directed=False)
    alone = Data(x=torch.zeros(2, 1))
    expected = (-columns.mean / columns.deviation).float()
    torch.testing.assert_close(columns.apply(alone).x[:, 1:], expected.expand(2, 4))
    for attributes in (None, ATTRIBUTES[:, :1]):
        with pytest.raises(GraphError, match="trained on 2 edge attributes"):
            columns.apply(graph(attributes=attributes))
