"""Hypothesis strategies for graphs and fields; potentials come from a seeded generator, so that graphs shrink well."""

import torch
from hypothesis import strategies as st

from accord import PairwiseField

DTYPE = torch.float64


@st.composite
def edge_lists(draw, num_nodes, tree=False, max_extra=4):
    """A random tree (or forest), plus a few more edges unless `tree`; directions and order are random."""
    edges = set()
    for child in range(1, num_nodes):
        if draw(st.integers(0, 9)):  # in one of ten cases, start a new component
            edges.add((draw(st.integers(0, child - 1)), child))
    if not tree and num_nodes > 2:
        for _ in range(draw(st.integers(1, max_extra))):
            s, t = draw(st.tuples(st.integers(0, num_nodes - 1), st.integers(0, num_nodes - 1)))
            if s != t:
                edges.add((min(s, t), max(s, t)))
    flipped = [edge[::-1] if draw(st.booleans()) else edge for edge in sorted(edges)]
    order = draw(st.permutations(flipped))
    return torch.tensor(order, dtype=torch.long).reshape(-1, 2).t()


@st.composite
def fields(
    draw, max_nodes=6, min_states=1, max_states=3, tree=False, replicas=((), (2,)), scale=None, ties=False, barred=0.0
):
    """A random field.

    Args:
        tree: forests only.
        replicas: shapes of the leading axes to choose from.
        ties: whole-number potentials, so that many labellings score the same.
        barred: chance that an entry is -inf.
    """
    num_nodes = draw(st.integers(1, max_nodes))
    num_states = draw(st.integers(min_states, max_states))
    edge_index = draw(edge_lists(num_nodes, tree=tree))
    lead = draw(st.sampled_from(replicas))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    size = draw(st.sampled_from([0.1, 1.0, 3.0])) if scale is None else scale

    def potentials(*shape):
        values = size * torch.randn(*lead, *shape, generator=generator, dtype=DTYPE)
        if ties:
            values = torch.randint(-1, 2, (*lead, *shape), generator=generator).to(DTYPE)
        off = torch.rand(*lead, *shape, generator=generator) < barred
        return values.masked_fill(off, -torch.inf)

    return PairwiseField(
        edge_index, potentials(num_nodes, num_states), potentials(edge_index.shape[1], num_states, num_states)
    )


def union(parts):
    """Fields side by side in one batch."""
    offset, index, graph = 0, [], []
    for number, part in enumerate(parts):
        index.append(part.edge_index + offset)
        graph.append(torch.full((part.num_nodes,), number))
        offset += part.num_nodes
    return PairwiseField(
        torch.cat(index, 1),
        torch.cat([part.node for part in parts], -2),
        torch.cat([part.edge for part in parts], -3),
        torch.cat(graph),
        len(parts),
    )
