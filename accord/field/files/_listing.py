"""A field as a list of tables of plain numbers, which model files hold."""

import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from accord._files import write_bytes
from accord.errors import FieldError, InputTypeError
from accord.field._field import PairwiseField
from accord.field.factors import AutomatonFactors, FactorField, FactorGroup, TableFactors, flatten

LARGEST_RULE = 2**16  # entries of a table that a rule is written as
REACH = 700.0  # exp(700) and exp(-700) are still floating-point numbers with all their digits
LEVEL = 6  # of compression; the highest takes several times as long and gains little
MOST_CONSTANTS = 10_000  # tables that hold nothing but a constant

Factor = tuple[list[int], np.ndarray]  # variables, and values of the table by rows


@dataclass(frozen=True, eq=False)
class Listing:
    """Every variable has a table of its own, of ones where nothing is known about it."""

    states: list[int]
    factors: list[Factor]


def listed(field: PairwiseField | FactorField, where: str) -> Listing:
    """The variables and tables of a field, with plain numbers in place of logarithms."""
    if not isinstance(field, (PairwiseField, FactorField)):
        raise InputTypeError(f"{where}: got a {type(field).__name__}, not a PairwiseField or FactorField.")
    field.check_changes(where)
    if field.replicas.numel() > 1:
        raise FieldError(
            f"{where}: the field has replicas {list(field.replicas)}, but a file holds one model. Write each of them "
            "to a file of its own."
        )
    with torch.no_grad():
        flat = flatten(_with_small_rules(field) if isinstance(field, FactorField) else field)
    unary, tables = (values[0].double().cpu().numpy() for values in (flat.unary, flat.tables))
    states, scope, starts = flat.states.tolist(), flat.scope.tolist(), flat.table_at.tolist()
    at, scope_at = flat.at.tolist(), flat.scope_at.tolist()
    factors: list[Factor] = []
    constant = 0.0
    for variable, begin in enumerate(at[:-1]):
        values, shift = _plain(unary[begin : at[variable + 1]], where, [variable])
        constant += shift
        factors.append(([variable], values))
    for factor, begin in enumerate(starts):
        own = scope[scope_at[factor] : scope_at[factor + 1]]
        size = math.prod(states[variable] for variable in own)
        values, shift = _plain(tables[begin : begin + size], where, own)
        constant += shift
        factors.append((own, values))
    return Listing(states, factors + _constants(constant, states, where))


def _plain(logs: np.ndarray, where: str, scope: Sequence[int]) -> tuple[np.ndarray, float]:
    """exp(logs - constant), and the constant: 0 where all numbers are in range."""
    finite = logs[logs > -np.inf]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    if high - low > 2 * REACH:
        raise FieldError(
            f"{where}: potentials of variables {list(scope)} run from {low:.6g} to {high:.6g}, but the file holds "
            f"exponentials, whose logarithms differ by {2 * REACH:.0f} at most. Use -inf for what is forbidden, or "
            "divide all potentials by a number."
        )
    in_range = -REACH <= low and high <= REACH
    constant = 0.0 if in_range else high if high - low <= REACH else (high + low) / 2
    return np.exp(logs - constant), constant


def _constants(total: float, states: Sequence[int], where: str) -> list[Factor]:
    """Tables of variable 0 that multiply everything by exp(total)."""
    count = math.ceil(abs(total) / REACH)
    if count > MOST_CONSTANTS:
        raise FieldError(
            f"{where}: the largest potentials add up to {total:.6g}, which is more than the file can hold. Subtract "
            "the largest potential from each table, which leaves all probabilities as they are."
        )
    return [([0], np.full(states[0], math.exp(total / count))) for _ in range(count)]


def _with_small_rules(field: FactorField) -> FactorField:
    """The field with small rules as tables over their own variables."""
    groups: list[FactorGroup] = []
    for group in field.groups:
        if isinstance(group, AutomatonFactors) and group.transitions.shape[1] ** group.order <= LARGEST_RULE:
            groups.append(TableFactors(group.scope, _rule_tables(group)))
        else:
            groups.append(group)
    return FactorField(field.node, groups, field.graph, field.states, field.num_graphs)


def _rule_tables(group: AutomatonFactors) -> torch.Tensor:
    """[*replicas, factors or 1, states, ..., states]."""
    state = group.transitions.new_zeros(())
    for _ in range(group.order):  # one more axis for each variable
        state = torch.where(state[..., None] >= 0, group.transitions[state.clamp(min=0)], -1)
    return group.final[..., state.clamp(min=0)].masked_fill(state < 0, -torch.inf)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write a text file atomically, compressed if its name ends in .gz."""
    content = ("\n".join(lines) + "\n").encode()
    write_bytes(path, gzip.compress(content, LEVEL, mtime=0) if path.suffix == ".gz" else content)
