"""Short rules as tables over their own variables, so that a search can change these one by one."""

import torch

from accord.field.factors import AutomatonFactors, FactorField, FactorGroup, TableFactors

LARGEST_TABLE = 256  # entries; longer rules become chains of small tables, with variables in between


def tabulate_short_rules(field: FactorField) -> FactorField:
    """The same field with a table for each rule of few combinations. Returned unchanged when there is none."""
    groups = [_tabulated(group) for group in field.groups]
    if all(new is old for new, old in zip(groups, field.groups, strict=True)):
        return field
    return FactorField(field.node, groups, field.graph, field.states, field.num_graphs)


def _tabulated(group: FactorGroup) -> FactorGroup:
    shape = group.shape
    if not isinstance(group, AutomatonFactors) or shape.numel() > LARGEST_TABLE:
        return group
    state = torch.zeros((), dtype=torch.long, device=group.scope.device)  # of the automaton, for each combination
    for size in shape:
        label = torch.arange(size, device=group.scope.device)
        after = group.transitions[state.clamp(min=0)[..., None], label]
        state = after.where(state[..., None] >= 0, -1)
    scores = group.final[..., state.clamp(min=0)].masked_fill(state < 0, -torch.inf)
    return TableFactors(group.scope, scores)
