"""Peeling takes leaves off a graph, round by round."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import edge_lists

from accord.graphs.structure._peeling import peel


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(edge_lists(n), st.just(n))))
def test_peeling_removes_every_leaf_and_keeps_loops(drawn):
    index, num_nodes = drawn
    peeling = peel(index, num_nodes)
    degree = torch.zeros(num_nodes, dtype=torch.long)
    for ends in index:
        degree.index_add_(0, ends, torch.ones_like(ends))
    gone = torch.zeros(num_nodes, dtype=torch.bool)
    for round_ in peeling.rounds:
        assert bool((degree[round_.leaf] == 1).all()) and not bool(gone[round_.parent].any())
        for leaf, parent, edge, forward in zip(*vars(round_).values(), strict=True):
            ends = index[:, edge].tolist()
            assert ends == ([leaf, parent] if forward else [parent, leaf])
            degree[leaf] -= 1
            degree[parent] -= 1
        gone[round_.leaf] = True
    assert torch.equal(peeling.core, ~gone)
    core_edge = peeling.core[index[0]] & peeling.core[index[1]]
    assert torch.equal(peeling.core_edge, core_edge)
    assert bool((degree[peeling.core] != 1).all())
