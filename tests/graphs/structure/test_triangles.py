"""Triangles of graphs, compared with a search over all sets of three nodes."""

from itertools import combinations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import edge_lists

from accord.errors import GraphError
from accord.graphs import triangles


@given(st.integers(0, 8).flatmap(lambda nodes: st.tuples(st.just(nodes), edge_lists(max(nodes, 1), max_extra=15))))
def test_triangles_are_all_sets_of_three_linked_nodes(case):
    num_nodes, edge_index = max(case[0], 1), case[1]
    linked = {frozenset(edge) for edge in edge_index.t().tolist()}
    threes = combinations(range(num_nodes), 3)
    expected = [list(three) for three in threes if all({*pair} in linked for pair in combinations(three, 2))]
    assert triangles(edge_index, num_nodes).tolist() == expected
    both = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    assert triangles(both, num_nodes).tolist() == expected


def test_a_complete_graph_has_all_of_them(monkeypatch):
    monkeypatch.setattr("accord.graphs.structure._triangles.WEDGES", 7)  # several rounds
    edges = torch.combinations(torch.arange(12)).t()
    assert len(triangles(edges, 12)) == 220


def test_self_loops_do_not_count():
    assert triangles(torch.tensor([[0, 1, 0, 0], [1, 1, 0, 1]]), 3).shape == (0, 3)


def test_nodes_must_exist():
    with pytest.raises(GraphError, match="names node 5"):
        triangles(torch.tensor([[0], [5]]), 3)
