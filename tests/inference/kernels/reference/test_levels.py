"""Levels from the centre of each component, and the order of messages that follows from them."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import edge_lists, fields

from accord import propagate
from accord.inference.kernels.reference._levels import centre_levels
from accord.inference.kernels.reference._sequential import order_arcs


def test_levels_start_at_the_centre():
    path = torch.stack([torch.arange(6), torch.arange(1, 7)])
    assert centre_levels(path, 7).tolist() == [3, 2, 1, 0, 1, 2, 3]
    assert centre_levels(path.flip(1), 8).tolist() == [3, 2, 1, 0, 1, 2, 3, 0]
    star = torch.stack([torch.zeros(4, dtype=torch.long), torch.arange(1, 5)])
    assert centre_levels(torch.cat([star, path + 5], 1), 12).tolist() == [0, 1, 1, 1, 1, 3, 2, 1, 0, 1, 2, 3]
    assert centre_levels(torch.empty(2, 0, dtype=torch.long), 0).tolist() == []


@given(st.data())
def test_levels_of_neighbours_differ_by_one_at_most(data):
    num_nodes = data.draw(st.integers(1, 9))
    index = data.draw(edge_lists(num_nodes))
    level = centre_levels(index, num_nodes)
    assert int(level.min()) == 0
    if index.shape[1]:
        assert int((level[index[0]] - level[index[1]]).abs().max()) <= 1


@given(fields(max_nodes=7))
def test_a_sweep_sends_every_message_once(field):
    problem = propagate(field, max_sweeps=0).problem
    steps = order_arcs(problem)
    sent = torch.cat([step.arcs for step in steps]) if steps else torch.empty(0, dtype=torch.long)
    assert sent.sort().values.tolist() == list(range(2 * field.num_edges))
    for step in steps:
        assert torch.equal(step.nodes[step.source], problem.arcs.source[step.arcs])
        assert torch.equal(step.nodes[step.target], problem.arcs.target[step.incoming])
        assert len(step.incoming) == int(torch.isin(problem.arcs.target, step.nodes).sum())
