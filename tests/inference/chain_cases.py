"""Chain fields drawn by hypothesis, and enumeration as their oracle."""

import torch
from hypothesis import strategies as st

from accord import ChainField, enumerate_beliefs


@st.composite
def chain_fields(draw, max_chains=4, max_length=4, max_states=3, dtype=torch.float64, barred=0.0, scale=None):
    """A random chain field, of any of the shapes that broadcast.

    Args:
        barred: chance that an entry is -inf. State 0 stays possible everywhere, so that every chain has a labelling.
    """
    chains, length = draw(st.integers(1, max_chains)), draw(st.integers(1, max_length))
    states = draw(st.integers(1, max_states))
    lead = draw(st.sampled_from([(), (2,), (2, 1)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    size = draw(st.sampled_from([0.1, 1.0, 3.0])) if scale is None else scale

    def potentials(*shape, spared):
        values = size * torch.randn(*shape, generator=generator, dtype=dtype)
        off = torch.rand(*shape, generator=generator) < barred
        off[spared] = False
        return values.masked_fill(off, -torch.inf)

    tables = [(), (1,), (length - 1,), (1, 1), (chains, 1), (chains, length - 1), (*lead, 1, 1)]
    tables.append((*lead, chains, length - 1))
    edge = potentials(*draw(st.sampled_from(tables)), states, states, spared=(..., 0, 0))
    node = potentials(*lead, chains, length, states, spared=(..., 0))
    ends = [None, (states,), (chains, states), (*lead, 1, states)]
    start, end = (
        None if shape is None else potentials(*shape, spared=(..., 0))
        for shape in draw(st.tuples(*[st.sampled_from(ends)] * 2))
    )
    lengths = draw(st.none() | st.lists(st.integers(1, length), min_size=chains, max_size=chains).map(torch.tensor))
    return ChainField(node, edge, lengths, start, end)


def enumerated(field, semiring):
    """Node beliefs, edge beliefs and log-partition by enumeration, in the shapes of `ChainBeliefs`."""
    exact = enumerate_beliefs(field.to_pairwise(), semiring)
    states = field.num_states
    node = field.node.new_full((*field.replicas, field.num_chains, field.length, states), -torch.inf)
    node[..., field.present, :] = exact.node
    edge = node.new_full((*field.replicas, field.num_chains, field.length - 1, states, states), -torch.inf)
    edge[..., field.present[:, 1:], :, :] = exact.edge
    return node, edge, exact.log_partition


def as_leaves(field):
    """The field with potentials that require a gradient, and those potentials."""
    given = {"node": field.node, "edge": field.edge, "start": field.start, "end": field.end}
    leaves = {name: values.clone().requires_grad_() for name, values in given.items() if values is not None}
    return ChainField(lengths=field.lengths, **leaves), list(leaves.values())
