"""Elimination orders are valid, and narrow on graphs whose width is known."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from inference.exact_cases import chain, complete, grid
from support.strategies import edge_lists

from accord.inference.exact._order import _min_fill, find_cliques


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), edge_lists(n, max_extra=14))), st.integers(3, 13))
def test_cliques_come_from_eliminating_one_node_after_another(drawn, max_clique):
    num_nodes, edge_index = drawn
    cliques = find_cliques(edge_index, num_nodes, max_clique)
    assert sorted(clique[0] for clique in cliques) == list(range(num_nodes))
    links = {frozenset(edge) for edge in edge_index.t().tolist()}
    for node, *others in cliques:
        if len(others) >= max_clique:
            return  # documented as invalid from here on
        assert {frozenset((node, other)) for other in others} == {link for link in links if node in link}
        links = {link for link in links if node not in link} | {
            frozenset((a, b)) for a in others for b in others if a < b
        }


@pytest.mark.parametrize(
    ("edge_index", "widest"),
    [(chain(50), 2), (torch.stack([torch.zeros(300, dtype=torch.long), torch.arange(1, 301)]), 2)]
    + [(torch.cat([chain(40), torch.tensor([[39], [0]])], 1), 3), (complete(6), 6)]
    + [(grid(6, 40), 8), (grid(40, 6), 8), (grid(12, 12), 14)],
    ids=["chain", "star", "cycle", "complete", "wide grid", "tall grid", "square grid"],
)
def test_orders_are_narrow(edge_index, widest):
    cliques = find_cliques(edge_index, int(edge_index.max()) + 1, 22)
    assert max(map(len, cliques)) <= widest


def irregular(num_nodes, chance, seed):
    every = complete(num_nodes)
    return every[:, torch.rand(every.shape[1], generator=torch.Generator().manual_seed(seed)) < chance]


def test_each_component_takes_the_better_order():
    # Min-fill is better on irregular graphs (11 against 17), breadth-first order on grids.
    both = find_cliques(torch.cat([irregular(60, 0.06, seed=2), grid(12, 20) + 60], 1), 300, 22)
    assert max(len(clique) for clique in both if clique[0] < 60) <= 12
    assert max(len(clique) for clique in both if clique[0] >= 60) <= 14


@pytest.mark.parametrize("seed", range(5))
def test_min_fill_always_takes_a_node_with_the_least_fill(seed):
    num_nodes, edge_index = 14, irregular(14, 0.4, seed)
    around = {node: set() for node in range(num_nodes)}
    for source, target in edge_index.t().tolist():
        around[source].add(target)
        around[target].add(source)

    def missing(node):
        return [(a, b) for a in around[node] for b in around[node] if a < b and b not in around[a]]

    for node, *_ in _min_fill([set(others) for others in around.values()], num_nodes):
        added = missing(node)
        assert len(added) == min(len(missing(other)) for other in around)
        for a, b in added:
            around[a].add(b)
            around[b].add(a)
        for other in around.pop(node):
            around[other].discard(node)
