"""Groups of factors: tables over a few variables, and rules that an automaton reads."""

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from accord.errors import FieldError, GraphError, InputTypeError
from accord.field._changes import check_memory_holds
from accord.field._checks import POTENTIAL_DTYPES, check_values
from accord.graphs._checks import check_integer, check_same_device, check_tensor

MAX_ORDER = 60  # variables of a table: torch tensors have at most 64 axes


class _Scoped:
    """Factors of one order."""

    scope: Tensor  # [factors, order]

    @property
    def num_factors(self) -> int:
        """How many factors."""
        return int(self.scope.shape[0])

    @property
    def order(self) -> int:
        """How many variables each factor has."""
        return int(self.scope.shape[1])


@dataclass(frozen=True, eq=False)
class TableFactors(_Scoped):
    """Factors that hold a log-potential for each combination of states of their variables.

    Axis i of a table belongs to variable `scope[:, i]`. It may be longer than that variable has states; entries beyond
    are ignored. So factors of variables with different numbers of states need no padding if each group holds those of
    one shape.

    Args:
        scope: [factors, order], the variables of each factor, all different.
        tables: [*replicas, factors, states, ..., states] with `order` axes of states. Fewer tables than factors may be
            given with `table`, or a single one, which all factors share.
        table: [factors], which table each factor has; None: factor f has table f, or the only one.
    """

    scope: Tensor
    tables: Tensor
    table: Tensor | None = None

    def __post_init__(self) -> None:
        where = type(self).__name__
        check_memory_holds(where, scope=self.scope, tables=self.tables, table=self.table)
        object.__setattr__(self, "scope", _check_scope(self.scope, where))
        if self.order > MAX_ORDER:
            raise FieldError(
                f"{where}: factors have {self.order} variables, but tables take at most {MAX_ORDER}. "
                "Use AutomatonFactors for rules over many variables."
            )
        tables = _check_values(self.tables, "tables", where)
        if tables.dim() < self.order + 1:
            raise FieldError(
                f"{where}: tables have shape {list(tables.shape)}, but [..., factors, {self.order} axes of states] is "
                "needed. Give one table for each row of scope, or a single one as tables[None]."
            )
        check_same_device(where, scope=self.scope, tables=tables)
        check_values("table", tables, where)
        if self.table is None:
            if self.num_tables not in (1, self.num_factors):
                raise FieldError(
                    f"{where}: there are {self.num_factors} factors but {self.num_tables} tables. Give one for each "
                    "factor, a single one for all, or say in `table` which factor has which."
                )
            return
        table = check_integer(self.table, "table", where)
        if table.shape != (self.num_factors,):
            raise FieldError(
                f"{where}: table has shape {list(table.shape)}, but one number for each of {self.num_factors} factors "
                "is needed."
            )
        if table.numel() and (int(table.min()) < 0 or int(table.max()) >= self.num_tables):
            raise FieldError(
                f"{where}: table names tables {int(table.min())} to {int(table.max())}, but there are 0 to "
                f"{self.num_tables - 1}. Number them along the axis before the states."
            )
        check_same_device(where, scope=self.scope, table=table)
        object.__setattr__(self, "table", table)

    @property
    def num_tables(self) -> int:
        """How many tables are stored."""
        return int(self.tables.shape[-self.order - 1])

    @property
    def shape(self) -> torch.Size:
        """Axes of a table."""
        return self.tables.shape[self.tables.dim() - self.order :]

    @property
    def replicas(self) -> torch.Size:
        """Leading replica axes of the tables."""
        return self.tables.shape[: -self.order - 1]

    @property
    def table_of(self) -> Tensor:
        """[factors]: which table each factor has."""
        if self.table is not None:
            return self.table
        each = torch.arange(self.num_factors, device=self.scope.device)
        return each if self.num_tables > 1 else torch.zeros_like(each)

    @property
    def values(self) -> Tensor:
        """What gradients reach."""
        return self.tables

    def with_values(self, values: Tensor) -> "TableFactors":
        """The same factors with other tables."""
        return TableFactors(self.scope, values, self.table)

    def with_checked(self, values: Tensor) -> "TableFactors":
        """The same, where the caller has checked the tables."""
        return _replaced(self, tables=values)

    @property
    def value_axes(self) -> torch.Size:
        """Axes of the values, without those of replicas."""
        return self.tables.shape[-self.order - 1 :]

    def score(self, labels: Tensor, lead: torch.Size) -> Tensor:
        """Log-potential of every factor [*lead, factors] under labels [*lead, nodes] (those that exist)."""
        state = labels[..., self.scope]  # [*lead, factors, order]
        place = torch.zeros_like(state[..., 0])
        for axis, size in enumerate(self.shape):
            place = place * size + state[..., axis]
        flat = self.tables.flatten(-self.order).flatten(-2)
        place = place + self.table_of * self.shape.numel()
        return flat.expand(*lead, flat.shape[-1]).gather(-1, place)


@dataclass(frozen=True, eq=False)
class AutomatonFactors(_Scoped):
    """Factors that read the states of their variables in order, and score the state in which an automaton ends.

    The automaton starts in state 0; label x of the next variable takes it from state q to `transitions[q, x]`, where -1
    forbids the label. A factor of n variables costs n x automaton states x states, not states ** n. Rules such as
    "at most one", "an even number" or "no two in a row" are such automata.

    Args:
        scope: [factors, order], the variables of each factor, all different and in the order in which they are read.
        transitions: [automaton states, states].
        final: [automaton states] or [*replicas, factors, automaton states], log-scores of the last state; -inf forbids
            it.
    """

    scope: Tensor
    transitions: Tensor
    final: Tensor

    def __post_init__(self) -> None:
        where = type(self).__name__
        check_memory_holds(where, scope=self.scope, transitions=self.transitions, final=self.final)
        object.__setattr__(self, "scope", _check_scope(self.scope, where))
        transitions = check_integer(self.transitions, "transitions", where)
        if transitions.dim() != 2 or not transitions.numel():
            raise FieldError(
                f"{where}: transitions have shape {list(transitions.shape)}, but [automaton states, states] is needed."
            )
        if int(transitions.min()) < -1 or int(transitions.max()) >= len(transitions):
            raise FieldError(
                f"{where}: transitions lead to states {int(transitions.min())} to {int(transitions.max())}, but the "
                f"automaton has 0 to {len(transitions) - 1}; -1 forbids a label."
            )
        final = _check_values(self.final, "final", where)
        if final.dim() == 1:
            final = final[None]
        if final.dim() < 1 or final.shape[-1] != len(transitions) or final.shape[-2] not in (1, self.num_factors):
            raise FieldError(
                f"{where}: final has shape {list(final.shape)}, but one score for each of {len(transitions)} automaton "
                f"states, or [{self.num_factors}, {len(transitions)}], is needed."
            )
        check_same_device(where, scope=self.scope, transitions=transitions, final=final)
        check_values("final", final, where)
        object.__setattr__(self, "transitions", transitions)
        object.__setattr__(self, "final", final)

    @property
    def shape(self) -> torch.Size:
        """States of each variable."""
        return torch.Size([self.transitions.shape[1]] * self.order)

    @property
    def replicas(self) -> torch.Size:
        """Leading replica axes of the scores."""
        return self.final.shape[:-2]

    @property
    def values(self) -> Tensor:
        """What gradients reach."""
        return self.final

    def with_values(self, values: Tensor) -> "AutomatonFactors":
        """The same factors with other scores."""
        return AutomatonFactors(self.scope, self.transitions, values)

    def with_checked(self, values: Tensor) -> "AutomatonFactors":
        """The same, where the caller has checked the scores."""
        return _replaced(self, final=values)

    @property
    def value_axes(self) -> torch.Size:
        """Axes of the values, without those of replicas."""
        return self.final.shape[-2:]

    def score(self, labels: Tensor, lead: torch.Size) -> Tensor:
        """Log-potential of every factor [*lead, factors] under labels [*lead, nodes] (those that exist)."""
        state = torch.zeros_like(labels[..., self.scope[:, 0]])
        for variable in self.scope.unbind(1):
            state = self.transitions[state.clamp(min=0), labels[..., variable]].where(state >= 0, -1)
        final = self.final.expand(*lead, self.num_factors, -1)
        scores = final.gather(-1, state.clamp(min=0)[..., None])[..., 0]
        return scores.masked_fill(state < 0, -torch.inf)


FactorGroup = TableFactors | AutomatonFactors
Group = TypeVar("Group", TableFactors, AutomatonFactors)


def _replaced(group: Group, **values: Tensor) -> Group:
    """A copy with other values that needs no checks."""
    other = object.__new__(type(group))
    other.__dict__.update(group.__dict__, **values)
    return other


def _check_scope(scope: object, where: str) -> Tensor:
    index = check_integer(scope, "scope", where)
    if index.dim() != 2 or index.shape[1] < 1:
        raise GraphError(
            f"{where}: scope has shape {list(index.shape)}, but [factors, order] is needed: one row of variables for "
            "each factor. Put factors of another order into a group of their own."
        )
    ordered = index.sort(1).values
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(1)
    if bool(repeated.any()):
        row = int(repeated.nonzero()[0])
        raise GraphError(
            f"{where}: factor {row} names a variable twice ({index[row].tolist()}). Give each variable once; a factor "
            "of a repeated variable is one of fewer variables."
        )
    return index


def _check_values(values: object, name: str, where: str) -> Tensor:
    tensor = check_tensor(values, name, where)
    if tensor.dtype not in POTENTIAL_DTYPES:
        raise InputTypeError(
            f"{where}: {name} have dtype {tensor.dtype}; float32 or float64 is needed. "
            "Convert them with .float() or .double()."
        )
    return tensor
