"""What a factor tells its variables, in plain torch: from its table, or from both passes over its automaton."""

from collections.abc import Sequence

import torch
from torch import Tensor

from accord.field.factors import RuleBlock
from accord.inference._semiring import REDUCE, Reduction


def table_messages(table: Tensor, cavities: Sequence[Tensor], semiring: str) -> tuple[Tensor, ...]:
    """For each variable, the other variables' states summed or maximised out: [R, factors, states].

    m_i(x_i) = reduce over x_j, j != i, of [ table(x) + sum_j cavity_j(x_j) ]

    Args:
        table: [R or 1, factors, states, ..., states].
        cavities: for each variable, what the rest of the field says about it [R, factors, states].
        semiring: "sum" or "max".
    """
    order = len(cavities)
    messages = []
    for own in range(order):
        total = table
        for axis, cavity in enumerate(cavities):
            if axis != own:
                total = total + _along(cavity, axis, order)
        others = tuple(2 + axis for axis in range(order) if axis != own)
        reduced = REDUCE[semiring](total, dim=others) if others else total
        messages.append(reduced.expand(len(cavities[own]), -1, -1))
    return tuple(messages)


def table_total(table: Tensor, cavities: Sequence[Tensor]) -> Tensor:
    """The table with all cavities added [R, factors, states, ..., states]."""
    total = table
    for axis, cavity in enumerate(cavities):
        total = total + _along(cavity, axis, len(cavities))
    return total


def rule_messages(
    rule: RuleBlock, final: Tensor, cavities: Sequence[Tensor], semiring: str
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Messages of a rule, as above, and the log-sum (or maximum) of all its labellings [R, factors].

    Forward: how likely the automaton is in state q before variable i. Backward: how well it can end from there.
    """
    reduce = REDUCE[semiring]
    reads = rule.transitions >= 0
    after = rule.transitions.clamp(min=0)
    count = len(rule.transitions)
    forward = cavities[0].new_full((*cavities[0].shape[:2], count), -torch.inf)
    forward[..., 0] = 0.0
    forwards = [forward]
    for cavity in cavities[:-1]:
        forwards.append(_step(rule, forwards[-1], cavity, reduce))
    backward = final.expand(*cavities[0].shape[:2], count)
    messages: list[Tensor] = []
    for forward, cavity in zip(reversed(forwards), reversed(cavities), strict=True):
        # [R, factors, automaton states, states]: the score of what follows after reading a label.
        following = backward[..., after].masked_fill(~reads, -torch.inf)
        messages.append(reduce(forward[..., :, None] + following, dim=-2))
        backward = reduce(following + cavity[..., None, :], dim=-1)
    return tuple(reversed(messages)), backward[..., 0]


def _step(rule: RuleBlock, forward: Tensor, cavity: Tensor, reduce: Reduction) -> Tensor:
    """The automaton's states after one more variable [R, factors, automaton states]."""
    joint = forward[..., :, None] + cavity[..., None, :]
    reached = [joint[..., rule.transitions == state] for state in range(len(rule.transitions))]
    barred = forward.new_full((*forward.shape[:-1], 1), -torch.inf)
    return torch.cat([reduce(torch.cat([each, barred], dim=-1), dim=-1)[..., None] for each in reached], dim=-1)


def _along(cavity: Tensor, axis: int, order: int) -> Tensor:
    """Spread [R, factors, states] along one of the axes of a table."""
    shape = [1] * order
    shape[axis] = cavity.shape[-1]
    spread: Tensor = cavity.unflatten(-1, shape)
    return spread
