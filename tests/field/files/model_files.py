"""Small model files, and fields to write."""

import torch
from hypothesis import strategies as st
from support.strategies import fields

from accord import FactorField, TableFactors

# The example of docs: three variables, pairs 0-1 and 1-2.
SMALL = """MARKOV
3
2 2 3
2
2 0 1
2 1 2

4
 4.000 2.400
 1.000 0.000

6
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.00
"""
# The same as libDAI writes it: the first variable changes fastest.
SMALL_FG = """# a comment
2

2
0 1
2 2
3
0 4.0
1 1.0
2 2.4

2
1 2
2 3
4
0 2.25
2 3.25
4 3.75
5 10
"""


def small_score(labels):
    """The score of SMALL, by hand."""
    one = torch.tensor([[4.0, 2.4], [1.0, 0.0]], dtype=torch.float64)
    two = torch.tensor([[2.25, 3.25, 3.75], [0.0, 0.0, 10.0]], dtype=torch.float64)
    return one[labels[..., 0], labels[..., 1]].log() + two[labels[..., 1], labels[..., 2]].log()


def states_of(field):
    return field.states if isinstance(field, FactorField) else torch.full((field.num_nodes,), field.num_states)


def all_labels(field, extra=0):
    """Every labelling [labellings, variables]; `extra` single-state variables follow."""
    counts = [torch.arange(int(count)) for count in states_of(field)] + [torch.zeros(1, dtype=torch.long)] * extra
    return torch.cartesian_prod(*counts).reshape(-1, len(counts))


@st.composite
def factor_fields(draw, max_nodes=5, max_states=3, scale=1.0, barred=0.15):
    """Variables with different numbers of states, and table factors of order 1 to 3."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    states = draw(st.lists(st.integers(1, max_states), min_size=1, max_size=max_nodes))

    def potentials(*shape):
        values = scale * torch.randn(*shape, generator=generator, dtype=torch.float64)
        return values.masked_fill(torch.rand(*shape, generator=generator) < barred, -torch.inf)

    groups = []
    for _ in range(draw(st.integers(0, 4))):
        order = draw(st.integers(1, min(3, len(states))))
        scope = draw(st.permutations(range(len(states))))[:order]
        groups.append(TableFactors(torch.tensor([scope]), potentials(1, *(states[each] for each in scope))))
    return FactorField(potentials(len(states), max(states)), groups, num_states=torch.tensor(states))


any_fields = st.one_of(fields(replicas=((), (1,)), barred=0.15, scale=3.0), factor_fields())
