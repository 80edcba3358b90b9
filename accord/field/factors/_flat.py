"""A field as plain arrays without padding, for compiled code: each variable has its own states, each factor its table.

A table is stored by rows: the state of the factor's last variable changes fastest. Factors come block by block (see
`table_blocks`), in the order of the groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field

import torch
from torch import Tensor

from accord.field._field import PairwiseField
from accord.field.factors._field import FactorField
from accord.field.factors._groups import AutomatonFactors, TableFactors
from accord.field.factors._tables import tabulate
from accord.graphs._derived import Derived


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Factors of a group whose variables have the same numbers of states."""

    group: int
    factors: Tensor  # [factors]: their numbers in the group
    scope: Tensor  # [factors, order]
    shape: torch.Size  # states of each variable
    table: Tensor  # [factors]: which of `tables_of` each factor has
    count: int  # how many tables
    used: Tensor | None = None  # [tables]: which tables of the group these are; None: all, without padding

    @property
    def order(self) -> int:
        """How many variables each factor has."""
        return int(self.scope.shape[1])

    def tables_of(self, field: FactorField) -> Tensor:
        """Tables [*replicas, tables, states, ..., states] of a field, cut to the states that exist."""
        tables = field.groups[self.group].values
        if self.used is None:
            return tables
        tables = tables.index_select(-self.order - 1, self.used)
        for axis, size in enumerate(self.shape):
            tables = tables.narrow(axis - self.order, 0, size)
        return tables


def table_blocks(field: FactorField) -> list[TableBlock]:
    """The table factors of a field, without padding."""
    blocks = []
    for number, group in enumerate(field.groups):
        if not isinstance(group, TableFactors) or not group.num_factors:
            continue
        counts = field.states[group.scope]
        if bool((counts == torch.tensor(list(group.shape), device=counts.device)).all()):
            each = torch.arange(group.num_factors, device=counts.device)
            blocks.append(TableBlock(number, each, group.scope, group.shape, group.table_of, group.num_tables))
            continue
        shapes, which = counts.unique(dim=0, return_inverse=True)
        for row, shape in enumerate(shapes.tolist()):
            factors = (which == row).nonzero().flatten()
            used, table = group.table_of[factors].unique(return_inverse=True)
            size = torch.Size(shape)
            blocks.append(TableBlock(number, factors, group.scope[factors], size, table, len(used), used))
    return blocks


@dataclass(frozen=True, eq=False)
class RuleBlock:
    """The factors of a group of rules."""

    group: int
    scope: Tensor  # [factors, order]
    transitions: Tensor  # [automaton states, states]: -1 forbids a label
    final: Tensor  # [R or 1, factors or 1, automaton states]

    @property
    def order(self) -> int:
        """How many variables each factor has."""
        return int(self.scope.shape[1])


@dataclass(frozen=True, eq=False)
class FlatField:
    """States of variable v are numbered at[v] to at[v + 1] along the last axis of `unary`; all integers are int64."""

    states: Tensor  # [nodes]: how many states each variable has
    at: Tensor  # [nodes + 1]
    unary: Tensor  # [R, states of all variables]
    scope_at: Tensor  # [factors + 1]: the variables of factor f are scope[scope_at[f] : scope_at[f + 1]]
    scope: Tensor  # [variables of all factors]
    table_at: Tensor  # [factors]: where a factor's table begins along the last axis of `tables`; some share one
    tables: Tensor  # [R or 1, entries of all tables]
    graph: Tensor  # [nodes]: which graph a variable belongs to
    num_graphs: int
    num_own: int  # variables of the field itself; later ones were added to express rules as tables
    blocks: tuple[TableBlock, ...] = ()  # the table factors of a FactorField, in the order of the flat ones
    rules: tuple[RuleBlock, ...] = ()  # those that are not expressed as tables
    # What follows from all but numbers; fields that differ in their numbers only share it.
    derived: Derived = dataclass_field(default_factory=Derived)

    @property
    def num_nodes(self) -> int:
        """Variables, with those that were added."""
        return len(self.states)

    @property
    def num_factors(self) -> int:
        """Factors, each with a table."""
        return len(self.table_at)

    def padded(self, values: Tensor, width: int) -> Tensor:
        """Values [R, states of all variables] as [R, nodes, width], -inf beyond a variable's own states."""
        if values.shape[1] == self.num_nodes * width:
            whole: Tensor = values.unflatten(1, (self.num_nodes, width))
            return whole
        whole = values.new_full((len(values), self.num_nodes, width), -torch.inf)
        whole[:, self._exists(width)] = values
        return whole

    def cut(self, values: Tensor) -> Tensor:
        """Values [R, nodes, states] as [R, states of all variables]."""
        if values[:1].numel() == self.unary.shape[1]:
            return values.flatten(1)
        cut: Tensor = values[:, self._exists(values.shape[2])]
        return cut

    def _exists(self, width: int) -> Tensor:
        """True where a variable has a state [nodes, width]."""
        return self.derived.get(
            ("exists", width), lambda: torch.arange(width, device=self.at.device) < self.states[:, None]
        )


@dataclass(frozen=True, eq=False)
class _Form:
    """What a flat field has beside numbers and graphs."""

    at: Tensor
    exists: Tensor | None  # places of the states that exist among [nodes * states]; None: all do
    scope_at: Tensor
    scope: Tensor
    table_at: Tensor
    blocks: tuple[TableBlock, ...]
    derived: Derived


def _form(whole: FactorField) -> _Form:
    exists = (torch.arange(whole.num_states, device=whole.node.device) < whole.states[:, None]).flatten()
    blocks = table_blocks(whole)
    starts, length = [], 0
    for block in blocks:
        starts.append(length + block.table * block.shape.numel())
        length += block.count * block.shape.numel()
    return _Form(
        at=_starts(whole.states),
        exists=None if bool(exists.all()) else exists.nonzero().flatten(),
        scope_at=_starts(_joined([torch.full_like(b.factors, b.order) for b in blocks], whole.states)),
        scope=_joined([block.scope.flatten() for block in blocks], whole.states),
        table_at=_joined(starts, whole.states),
        blocks=tuple(blocks),
        derived=Derived(),
    )


def flatten(field: PairwiseField | FactorField, keep_rules: bool = False) -> FlatField:
    """The field as arrays. Gradients reach `unary`, `tables` and `rules`.

    Args:
        field: the field.
        keep_rules: keep rules as automata; otherwise they become tables with variables of their own (see `tabulate`).
    """
    if isinstance(field, PairwiseField):
        return _flatten_pairs(field)
    whole = field if keep_rules else tabulate(field)
    form = whole.derived.get("form", lambda: _form(whole))
    count = field.replicas.numel()
    node = whole.node.expand(*field.replicas, *whole.node.shape[-2:]).reshape(count, -1)
    tables = [(block, block.tables_of(whole)) for block in form.blocks]
    shared = not any(values.shape[: -block.order - 1].numel() > 1 for block, values in tables)
    rows = [_rows(values, block.order, 1 if shared else count, field.replicas) for block, values in tables]
    return FlatField(
        states=whole.states,
        at=form.at,
        unary=node if form.exists is None else node.index_select(1, form.exists),
        scope_at=form.scope_at,
        scope=form.scope,
        table_at=form.table_at,
        tables=_joined(rows, node.new_empty(1, 0)),
        graph=whole.graph,
        num_graphs=field.num_graphs,
        num_own=field.num_nodes,
        blocks=form.blocks,
        rules=_rules(whole),
        derived=form.derived,
    )


def _rows(tables: Tensor, order: int, count: int, replicas: torch.Size) -> Tensor:
    """Tables of a block as [count, entries]; `count` is that of the replicas, or 1 if all share them."""
    if count > 1:
        tables = tables.expand(*replicas, *tables.shape[-order - 1 :])
    return tables.reshape(count, -1)


def _rules(field: FactorField) -> tuple[RuleBlock, ...]:
    blocks = []
    for number, group in enumerate(field.groups):
        if isinstance(group, AutomatonFactors) and group.num_factors:
            lead = field.replicas if group.replicas.numel() > 1 else torch.Size([1])
            final = group.final.expand(*lead, *group.final.shape[-2:]).reshape(lead.numel(), *group.final.shape[-2:])
            blocks.append(RuleBlock(number, group.scope, group.transitions, final))
    return tuple(blocks)


def _flatten_pairs(field: PairwiseField) -> FlatField:
    node, edge = field.expanded()
    nodes, edges, states = field.num_nodes, field.num_edges, field.num_states
    counts = torch.full((nodes,), states, device=node.device)
    each = torch.arange(edges + 1, device=node.device)
    return FlatField(
        states=counts,
        at=_starts(counts),
        unary=node.flatten(1),
        scope_at=2 * each,
        scope=field.edge_index.t().flatten(),
        table_at=states**2 * each[:-1],
        tables=edge.flatten(1),
        graph=field.graph,
        num_graphs=field.num_graphs,
        num_own=nodes,
    )


def _starts(sizes: Tensor) -> Tensor:
    """Where each piece begins when pieces of these sizes follow each other, and where the last one ends."""
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def _joined(pieces: Sequence[Tensor], empty: Tensor) -> Tensor:
    return torch.cat(list(pieces), dim=-1) if pieces else empty[..., :0]
