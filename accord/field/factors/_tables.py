"""Rules as tables: an automaton of n variables becomes a chain of tables over two or three."""

import torch
from torch import Tensor

from accord.field.factors._field import FactorField
from accord.field.factors._groups import AutomatonFactors, FactorGroup, TableFactors


def tabulate(field: FactorField) -> FactorField:
    """The same field with tables only. Returned unchanged when it has no rules.

    Each rule gets variables of its own, numbered after the field's: the states of its automaton between two of its
    variables. The field's variables determine them, so scores of labellings, marginals and the partition function
    stay. Gradients reach the scores of the rules.
    """
    if not any(isinstance(group, AutomatonFactors) for group in field.groups):
        return field
    groups: list[FactorGroup] = []
    states, graph = [field.states], [field.graph]
    offset = field.num_nodes
    for group in field.groups:
        if not isinstance(group, AutomatonFactors):
            groups.append(group)
            continue
        inner = group.num_factors * (group.order - 1)
        between = offset + torch.arange(inner, device=group.scope.device).reshape(group.num_factors, -1)
        groups += _chain(group, between)
        states.append(torch.full_like(between.flatten(), len(group.transitions)))
        graph.append(field.graph[group.scope[:, 0]].repeat_interleave(group.order - 1))
        offset += inner
    counts = torch.cat(states)
    width = max(int(counts.max()), field.num_states) if len(counts) else field.num_states
    node = field.node.new_zeros(*field.node.shape[:-2], len(counts), width)
    node[..., : field.num_nodes, : field.num_states] = field.node
    return FactorField(node, groups, torch.cat(graph), counts, field.num_graphs)


def _chain(group: AutomatonFactors, between: Tensor) -> list[FactorGroup]:
    """Tables of a group's factors; `between` [factors, order - 1] are the variables that hold automaton states."""
    count, size = len(group.transitions), group.transitions.shape[1]
    allowed = group.transitions >= 0
    # last[..., q, x]: the score of reading x in state q as the last variable.
    ended = group.final[..., group.transitions.clamp(min=0).flatten()].unflatten(-1, (count, size))
    last = ended.masked_fill(~allowed, -torch.inf)
    if group.order == 1:
        return [TableFactors(group.scope, last[..., 0, :])]
    step = torch.full((count, size, count), -torch.inf, dtype=last.dtype, device=last.device)
    state, label = allowed.nonzero().unbind(1)
    step[state, label, group.transitions[state, label]] = 0.0
    ends = torch.stack([between[:, -1], group.scope[:, -1]], dim=1)
    chain: list[FactorGroup] = [
        TableFactors(torch.stack([group.scope[:, 0], between[:, 0]], dim=1), step[0][None]),
        TableFactors(ends, last),
    ]
    if group.order > 2:
        middle = torch.stack([between[:, :-1], group.scope[:, 1:-1], between[:, 1:]], dim=2).flatten(0, 1)
        chain.append(TableFactors(middle, step[None]))
    return chain
