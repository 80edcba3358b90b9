"""Hypothesis strategies for fields with factors, and their beliefs from the scores of all labellings."""

import itertools

import torch
from hypothesis import strategies as st

from accord import (
    AndFactors,
    AtMostOneFactors,
    AutomatonFactors,
    FactorField,
    OrFactors,
    ParityFactors,
    PottsFactors,
    TableFactors,
)

DTYPE = torch.float64
BINARY_RULES = (OrFactors, AndFactors, AtMostOneFactors, ParityFactors)


@st.composite
def factor_fields(
    draw, max_nodes=6, max_states=3, max_order=4, tree=False, rules=True, barred=0.0, replicas=((), (2,)), ties=False
):
    """A random field: mixed numbers of states, tables of one to `max_order` variables, some shared, and rules.

    Args:
        tree: no cycle among factors and variables.
        barred: chance that an entry is -inf.
        ties: whole-number potentials, so that many labellings score the same.
    """
    num_nodes = draw(st.integers(1, max_nodes))
    counts = torch.tensor(draw(st.lists(st.integers(1, max_states), min_size=num_nodes, max_size=num_nodes)))
    lead = draw(st.sampled_from(replicas))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))

    def potentials(*shape):
        values = torch.randn(*lead, *shape, generator=generator, dtype=DTYPE)
        if ties:
            values = torch.randint(-1, 2, (*lead, *shape), generator=generator).to(DTYPE)
        off = torch.rand(*lead, *shape, generator=generator) < barred
        return values.masked_fill(off, -torch.inf)

    joined = list(range(num_nodes))  # which component of factors a variable belongs to

    def scope(most, among):
        chosen = []
        for variable in draw(st.permutations(among)):
            if len(chosen) < most and not (tree and joined[variable] in {joined[other] for other in chosen}):
                chosen.append(variable)
        merged = {joined[variable] for variable in chosen}
        for variable, name in enumerate(joined):
            if name in merged:
                joined[variable] = joined[chosen[0]]
        return chosen

    groups = []
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["table", "table", "shared", "padded", "rule", "potts"] if rules else ["table"]))
        order = draw(st.integers(1, max_order))
        binary = [variable for variable in range(num_nodes) if counts[variable] == 2]
        if kind == "rule" and len(binary) > 1:
            chosen = torch.tensor([scope(order + 1, binary)])
            if chosen.shape[1] > 1:
                groups.append(draw(st.sampled_from(BINARY_RULES))(chosen))
            continue
        alike = [variable for variable in range(num_nodes) if counts[variable] == counts[0]]
        if kind == "potts":
            chosen = torch.tensor([scope(order, alike)])
            groups.append(PottsFactors(chosen, draw(st.sampled_from([-1.5, 0.7])), int(counts[0])))
            continue
        chosen = [scope(order, list(range(num_nodes)))]
        shape = [max_states if kind == "padded" else int(counts[variable]) for variable in chosen[0]]
        if kind == "shared" and not tree:  # the same table at the same variables again
            chosen = chosen * 2
        groups.append(TableFactors(torch.tensor(chosen), potentials(1, *shape)))
    return FactorField(potentials(num_nodes, max_states), groups, num_states=counts)


def labellings(field):
    """All labellings of a small field [labellings, nodes]."""
    return torch.tensor(list(itertools.product(*(range(int(count)) for count in field.states))))


def enumerated(field, semiring="sum"):
    """Log-partition (or best score) [*replicas] and node beliefs [*replicas, nodes, states] of a field of one graph."""
    listed = labellings(field)
    count = len(field.replicas)
    scores = field.score(listed.reshape(len(listed), *(1,) * count, -1))[..., 0].movedim(0, -1)

    def reduce(values):
        return values.logsumexp(-1) if semiring == "sum" else values.amax(-1)

    total = reduce(scores)
    node = torch.full((*field.replicas, field.num_nodes, field.num_states), -torch.inf, dtype=DTYPE)
    for variable in range(field.num_nodes):
        for state in range(int(field.states[variable])):
            node[..., variable, state] = reduce(scores[..., listed[:, variable] == state])
    return total, node - total[..., None, None]


def side_by_side(parts):
    """Fields as one batch."""
    width = max(part.num_states for part in parts)
    offset, node, states, graph, groups = 0, [], [], [], []
    for number, part in enumerate(parts):
        node.append(torch.nn.functional.pad(part.node, (0, width - part.num_states)))
        states.append(part.states)
        graph.append(torch.full((part.num_nodes,), number))
        for group in part.groups:
            moved = group.scope + offset
            if isinstance(group, TableFactors):
                groups.append(TableFactors(moved, group.tables, group.table))
            else:
                groups.append(AutomatonFactors(moved, group.transitions, group.final))
        offset += part.num_nodes
    return FactorField(torch.cat(node, -2), groups, torch.cat(graph), torch.cat(states), len(parts))
