"""Colours split the nodes into classes without inner edges."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import edge_lists

from accord.graphs.structure._colouring import colour_nodes


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(edge_lists(n), st.just(n))))
def test_nodes_of_one_colour_share_no_edge(drawn):
    index, num_nodes = drawn
    classes = colour_nodes(index, num_nodes)
    colour = torch.full((num_nodes,), -1)
    for number, nodes in enumerate(classes):
        assert bool((colour[nodes] == -1).all()) and nodes.numel()
        colour[nodes] = number
    assert bool((colour >= 0).all())
    assert bool((colour[index[0]] != colour[index[1]]).all())
