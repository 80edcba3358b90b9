"""Graphs that are read when they are asked for, and passes over them."""

import pytest
import torch
from torch_geometric.data import Data

from accord.graphs import GraphStream, batches_of, each, each_numbered, fit_treatment, portions_of, scale_ratio
from accord.graphs.features._moments import Moments


class Numbers(GraphStream):
    """Graphs of so many nodes, whose one feature is their number."""

    def __init__(self, *sizes):
        self.sizes, self.reads = sizes, []

    def __len__(self):
        return len(self.sizes)

    def read(self, number):
        self.reads.append(number)
        size = self.sizes[number]
        return Data(x=torch.full((size, 1), float(number)), edge_index=torch.empty(2, 0, dtype=torch.long))


def test_a_stream_is_a_sequence_that_reads_what_is_asked_for():
    stream = Numbers(1, 2, 3, 4)
    assert len(stream) == 4 and not stream.reads
    assert stream[-1].x.shape == (4, 1) and stream.reads == [3]
    assert [len(graph.x) for graph in stream[1:3]] == [2, 3]
    assert [len(graph.x) for graph in stream] == [1, 2, 3, 4]
    with pytest.raises(IndexError):
        stream[4]


def test_changes_of_a_stream_wait_until_a_graph_is_read():
    stream = Numbers(2, 2)
    changed = each_numbered(each(stream, lambda graph: Data(x=graph.x + 1)), lambda n, graph: Data(x=graph.x * 10**n))
    assert isinstance(changed, GraphStream) and not stream.reads
    assert changed[1].x.tolist() == [[20.0], [20.0]] and stream.reads == [1]
    assert [graph.x[0].tolist() for graph in each(list(stream), lambda graph: Data(x=graph.x + 1))] == [[1.0], [2.0]]


def test_portions_are_bounded_and_a_large_graph_stands_alone(monkeypatch):
    monkeypatch.setattr("accord.graphs._stream.PORTION_NUMBERS", 5)
    stream = Numbers(2, 2, 2, 9, 1, 1)
    found = [[len(graph.x) for graph in portion] for portion in portions_of(stream)]
    assert found == [[2, 2], [2], [9], [1, 1]]
    assert [batch.num_graphs for batch in batches_of(stream)] == [2, 1, 1, 2]
    assert [batch.num_graphs for batch in batches_of(list(stream))] == [6]  # a list is in memory already


def test_moments_of_portions_are_those_of_all_rows():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(1000, 3, generator=generator) * torch.tensor([1.0, 100.0, 0.0]) + torch.tensor([1e4, 0.0, 7.0])
    whole, parts = Moments(), Moments()
    whole.add(rows)
    for part in rows.split([1, 0, 499, 300, 200]):
        parts.add(part)
    torch.testing.assert_close(parts.mean, rows.double().mean(0), rtol=1e-14, atol=1e-12)
    torch.testing.assert_close(parts.variance, rows.double().var(0, correction=0), rtol=1e-12, atol=1e-12)
    assert parts.count == 1000 and parts.scales()[2] == 1
    assert torch.equal(whole.mean, rows.double().mean(0)) and torch.equal(
        whole.scales()[:2], rows.double().std(0, correction=0)[:2]
    )


@pytest.mark.parametrize("portion", [1, 2**22])
def test_a_node_of_several_graphs_scales_features_once(portion, monkeypatch):
    monkeypatch.setattr("accord.graphs._stream.PORTION_NUMBERS", portion)
    graphs = [
        Data(x=torch.tensor([[1.0], [3.0]]), node_id=torch.tensor([5, 9])),
        Data(x=torch.tensor([[3.0], [8.0]]), node_id=torch.tensor([9, 2])),
    ]
    found = fit_treatment("standardised", graphs)
    assert found.mean.tolist() == [4.0]
    torch.testing.assert_close(found.deviation, torch.tensor([26 / 3]).double().sqrt())


def test_scales_are_compared_over_all_portions(monkeypatch):
    monkeypatch.setattr("accord.graphs._stream.PORTION_NUMBERS", 1)
    graphs = [Data(x=torch.tensor([[0.0, 0.0, 7.0]])), Data(x=torch.tensor([[1.0, 50.0, 7.0]]))]
    assert scale_ratio(graphs) == 50.0
