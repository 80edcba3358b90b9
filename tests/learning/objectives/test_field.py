"""Scores as potentials: the field that they form; graphs are checked once."""

import pytest
import torch
from learning.training_cases import TRAIN
from torch.testing import assert_close

from accord import PairwiseField
from accord.errors import FieldError, GraphError
from accord.field import _field
from accord.graphs import GraphBatch, Topology
from accord.learning.objectives import raw_field


def potentials(shape, states, seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    node = torch.randn(2, shape.num_nodes, states, generator=generator, dtype=dtype)
    return node, torch.randn(2, shape.num_edges, states, states, generator=generator, dtype=dtype)


def test_fields_of_the_same_graphs_are_independent():
    shape = GraphBatch.collate(TRAIN).topology
    cases = [(3, 0, torch.float32), (3, 1, torch.float32), (2, 2, torch.float32), (3, 3, torch.float64)]
    made = [raw_field(*potentials(shape, *case), shape) for case in cases]
    for case, field in zip(cases, made, strict=True):
        whole = PairwiseField(shape.edge_index, *potentials(shape, *case), shape.graph, shape.num_graphs)
        for name in ("edge_index", "node", "edge", "graph", "num_graphs"):
            assert_close(getattr(field, name), getattr(whole, name), rtol=0, atol=0)


def test_edges_are_checked_once(monkeypatch):
    checked, check = [], _field.check_edges_once
    monkeypatch.setattr(_field, "check_edges_once", lambda *given: checked.append(1) or check(*given))
    shape = GraphBatch.collate(TRAIN).topology
    for seed in range(3):
        raw_field(*potentials(shape, 3, seed), shape)
    assert checked == [1]


def test_gradients_reach_the_scores_every_time():
    shape = GraphBatch.collate(TRAIN).topology
    for _ in range(2):
        node, edge = (values.requires_grad_() for values in potentials(shape, 3, 0))
        field = raw_field(node, edge, shape)
        (field.node.sum() + 2 * field.edge.sum()).backward()
        assert_close(node.grad, torch.ones_like(node))
        assert_close(edge.grad, torch.full_like(edge, 2.0))


def test_bad_scores_and_bad_graphs_are_refused():
    shape = GraphBatch.collate(TRAIN).topology
    node, edge = potentials(shape, 3, 0)
    raw_field(node, edge, shape)
    with pytest.raises(FieldError, match="nan|NaN"):
        raw_field(node * torch.nan, edge, shape)
    with pytest.raises(FieldError, match="edge tables"):
        raw_field(node, edge[:, 1:], shape)
    with pytest.raises(FieldError, match="nodes"):
        raw_field(node[:, 1:], edge, shape)
    twice = Topology(2, torch.tensor([[0, 1], [1, 0]]), torch.arange(2), torch.zeros(2, dtype=torch.long), 1)
    with pytest.raises(GraphError, match="more than once"):
        raw_field(torch.zeros(2, 3), torch.zeros(2, 3, 3), twice)


def test_graphs_without_nodes_or_edges():
    for nodes in (0, 2):
        nothing = Topology(nodes, torch.empty(2, 0, dtype=torch.long), torch.arange(0), torch.zeros(nodes).long(), 1)
        field = raw_field(torch.zeros(nodes, 3), torch.zeros(0, 3, 3), nothing)
        assert (field.num_nodes, field.num_edges, field.num_graphs) == (nodes, 0, 1)
