"""Edges once, arcs both ways, attributes carried along."""

import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from accord.graphs import graph_topology, topology


@st.composite
def messy_index(draw):
    num_nodes = draw(st.integers(1, 8))
    node = st.integers(0, num_nodes - 1)
    columns = draw(st.lists(st.tuples(node, node), max_size=20))
    return torch.tensor(columns, dtype=torch.long).reshape(-1, 2).t(), num_nodes


@given(messy_index())
def test_each_undirected_edge_once_in_the_direction_first_seen(drawn):
    index, num_nodes = drawn
    seen = {}
    for column, (s, t) in enumerate(index.t().tolist()):
        if s != t and frozenset((s, t)) not in seen:
            seen[frozenset((s, t))] = (s, t, column)
    result = topology(index, num_nodes)
    expected = list(seen.values())
    assert result.edge_index.t().tolist() == [[s, t] for s, t, _ in expected]
    assert result.column.tolist() == [column for _, _, column in expected]
    assert result.num_edges == len(expected)


@given(messy_index())
def test_arcs_run_both_ways(drawn):
    result = topology(*drawn)
    arcs = result.arcs
    assert torch.equal(arcs.source[arcs.reverse], arcs.target)
    assert torch.equal(arcs.target[arcs.reverse], arcs.source)
    assert torch.equal(arcs.reverse[arcs.reverse], torch.arange(2 * result.num_edges))


def test_cached_values_are_computed_once_for_each_key():
    one, other = (topology(torch.tensor([[0], [1]]), 2) for _ in range(2))
    made = [one.cached(key, lambda: [one]) for key in ("a", "a", ("a", 2))]
    assert made[0] is made[1] and made[0] is not made[2]
    assert other.cached("a", lambda: "its own") == "its own"


def test_attributes_follow_the_first_occurrence():
    index = torch.tensor([[0, 2, 1, 1, 2], [1, 2, 0, 2, 1]])
    result = topology(index, 3)
    assert result.carry(torch.arange(5.0)).tolist() == [0.0, 3.0]
    assert result.notes == ("1 self-loops removed",)
    with pytest.raises(ValueError, match="one row for every column"):
        result.carry(torch.arange(2.0))


def test_notes_describe_what_was_cleaned():
    assert topology(torch.tensor([[0, 1], [1, 0]]), 2).notes == ()
    assert "one direction only" in topology(torch.tensor([[0], [1]]), 2).notes[0]
    assert "3 arcs merged into 1" in topology(torch.tensor([[0, 1, 0], [1, 0, 1]]), 2).notes[0]


def test_isolated_single_and_empty_graphs():
    nothing = torch.empty(2, 0, dtype=torch.long)
    assert topology(nothing, 0).num_edges == 0
    assert topology(nothing, 1).num_nodes == 1
    assert topology(torch.tensor([[4], [2]]), 7).num_edges == 1
    assert graph_topology(Data(x=torch.ones(3, 1))).num_edges == 0


def test_batches_keep_their_graphs_apart():
    one = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    none = Data(x=torch.ones(1, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    result = graph_topology(Batch.from_data_list([one, none, one]))
    assert result.graph.tolist() == [0, 0, 1, 2, 2]
    assert result.num_graphs == 3 and result.edge_index.tolist() == [[0, 3], [1, 4]]
    with pytest.raises(ValueError, match="joins graphs 0 and 1"):
        topology(torch.tensor([[0], [1]]), 2, torch.tensor([0, 1]))


def test_time_grows_with_edges_not_with_nodes_squared():
    """A million nodes would need a terabyte as a dense matrix; here it is a second or two."""
    generator = torch.Generator().manual_seed(0)
    index = torch.randint(0, 1_000_000, (2, 1_000_000), generator=generator)
    begin = time.perf_counter()
    result = topology(torch.cat([index, index.flip(0)], 1), 1_000_000)
    assert time.perf_counter() - begin < 20
    assert result.num_edges <= 1_000_000
