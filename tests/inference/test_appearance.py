"""Spanning tree probabilities against the matrix-tree theorem: count the trees with and without each edge."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import edge_lists
from torch.testing import assert_close

from accord.graphs.structure._peeling import peel
from accord.inference import _appearance, _spanning, spanning_tree_probabilities


def number_of_trees(edges, num_nodes):
    laplacian = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for s, t in edges:
        laplacian[s, s] += 1
        laplacian[t, t] += 1
        laplacian[s, t] -= 1
        laplacian[t, s] -= 1
    return float(torch.linalg.det(laplacian[1:, 1:])) if num_nodes > 1 else 1.0


def connected_lists(num_nodes):
    return edge_lists(num_nodes).filter(lambda e: number_of_trees(e.t().tolist(), num_nodes) > 0.5)


@given(st.integers(2, 7).flatmap(lambda n: st.tuples(st.just(n), connected_lists(n))))
def test_probability_is_the_share_of_trees_with_the_edge(drawn):
    num_nodes, index = drawn
    edges = index.t().tolist()
    probability = spanning_tree_probabilities(index, num_nodes)
    total = number_of_trees(edges, num_nodes)
    for place, p in enumerate(probability.tolist()):
        without = number_of_trees(edges[:place] + edges[place + 1 :], num_nodes)
        assert abs(p - (1 - without / total)) < 1e-9
    assert_close(probability.sum(), torch.tensor(num_nodes - 1.0, dtype=torch.float64), rtol=0, atol=1e-9)


def grid(rows, columns):
    number = torch.arange(rows * columns).reshape(rows, columns)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    return torch.cat([across, torch.stack([number[:-1].flatten(), number[1:].flatten()])], 1)


def test_dense_and_sparse_solvers_agree(monkeypatch):
    index = torch.cat([grid(6, 7), grid(6, 7) + 42, torch.tensor([[84], [85]])], 1)
    dense = spanning_tree_probabilities(index, 90)
    monkeypatch.setattr(_appearance, "DENSE_NODES", 2)
    monkeypatch.setattr(_appearance, "SOLVE_COLUMNS", 10)
    assert_close(spanning_tree_probabilities(index, 90), dense, rtol=0, atol=1e-9)
    assert float(dense[-1]) == pytest.approx(1.0)


def test_bridges_are_in_every_tree():
    index = torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 3, 4]])
    assert_close(spanning_tree_probabilities(index, 6)[-2:], torch.ones(2, dtype=torch.float64), rtol=0, atol=1e-9)
    assert peel(index, 6).core_edge.tolist() == [True, True, True, False, False]


def test_no_edges():
    assert spanning_tree_probabilities(torch.empty(2, 0, dtype=torch.long), 3).shape == (0,)
    assert spanning_tree_probabilities(torch.empty(2, 0, dtype=torch.long), 0).shape == (0,)


def test_compiled_equals_scipy(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    extra = torch.randint(300, (2, 150), generator=generator)
    loose = torch.stack([(torch.rand(299, generator=generator) * torch.arange(1, 300)).long(), torch.arange(1, 300)])
    both = torch.cat([loose, extra[:, extra[0] != extra[1]]], 1).sort(0).values.unique(dim=1)
    index = torch.cat([both, grid(9, 11) + 300], 1)
    compiled = spanning_tree_probabilities(index, 400)
    monkeypatch.setattr(_spanning, "available", lambda: False)
    assert_close(compiled, spanning_tree_probabilities(index, 400), rtol=0, atol=1e-9)


def test_averages_over_trees_lie_in_the_polytope(monkeypatch):
    index = torch.cat([grid(10, 10), torch.tensor([[0, 100], [100, 101]])], 1)  # with two bridges at the end
    exact = spanning_tree_probabilities(index, 102)
    monkeypatch.setattr(_spanning, "BUDGET", 0.0)
    averaged = spanning_tree_probabilities(index, 102)
    assert not torch.equal(averaged, exact)
    assert bool((averaged > 0).all()) and averaged[-2:].tolist() == [1.0, 1.0]
    assert_close(averaged.sum(), torch.tensor(101.0, dtype=torch.float64), rtol=0, atol=1e-9)
    assert float((averaged - exact).abs().max()) < 5 * (0.25 / 64) ** 0.5
    # No set of nodes has more than one tree's share of the edges inside it.
    generator = torch.Generator().manual_seed(1)
    for _ in range(200):
        inside = torch.rand(102, generator=generator) < torch.rand((), generator=generator)
        share = averaged[inside[index[0]] & inside[index[1]]].sum()
        assert float(share) <= max(int(inside.sum()) - 1, 0) + 1e-9


def test_every_edge_of_a_dense_graph_has_a_positive_average(monkeypatch):
    monkeypatch.setattr(_spanning, "BUDGET", 0.0)
    monkeypatch.setattr(_spanning, "LEAST", 1)
    monkeypatch.setattr(_spanning, "MOST", 1)
    index = torch.combinations(torch.arange(60)).t()
    averaged = spanning_tree_probabilities(index, 60)
    assert bool((averaged > 0).all())
    assert_close(averaged.sum(), torch.tensor(59.0, dtype=torch.float64), rtol=0, atol=1e-9)
