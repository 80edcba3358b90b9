"""Where the variables, tables and messages of factors lie in a flat field: factors of one shape at a time."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.field.factors import FlatField, RuleBlock, TableBlock

MOST_KEPT = 2**16  # variables of all factors; layouts of larger fields take more memory than they save time
Block = TableBlock | RuleBlock | None


@dataclass(frozen=True, eq=False)
class Alike:
    """Factors whose variables have the same numbers of states."""

    factor: Tensor  # [factors]: their numbers
    scope: Tensor  # [factors, order]
    shape: tuple[int, ...]  # states of each variable
    state: tuple[Tensor, ...]  # for each variable [factors, states]: places along `unary`
    message: tuple[Tensor, ...]  # for each variable [factors, states]: places along the messages
    table: Tensor | None  # [factors]: where their tables begin; None for rules
    block: Block  # the block of a FactorField that they are; None for edges of a PairwiseField

    @property
    def rule(self) -> RuleBlock | None:
        """The rule that they are, or None."""
        return self.block if isinstance(self.block, RuleBlock) else None

    def tables(self, values: Tensor) -> Tensor:
        """Their tables [R or 1, factors, states, ..., states], from all tables of the field [R or 1, entries]."""
        assert self.table is not None
        size = torch.Size(self.shape).numel()
        entries = self.table[:, None] + torch.arange(size, device=values.device)
        tables: Tensor = values[:, entries].unflatten(-1, self.shape)
        return tables


class Layout:
    """All factors of a flat field, and which variable, factor and graph each number of the messages belongs to."""

    def __init__(self, flat: FlatField) -> None:
        self.states, self.at, self.graph, self.scope_at, self.table_at = (
            flat.states,
            flat.at,
            flat.graph,
            flat.scope_at,
            flat.table_at,
        )
        self.num_tabled, self.blocks, self.rules = flat.num_factors, flat.blocks, flat.rules
        # The variable of each message: those from tables first, then those from rules.
        self._scope = torch.cat([flat.scope, *(rule.scope.flatten() for rule in flat.rules)])
        self._sizes = flat.states[self._scope]
        self._starts = torch.cat([self._sizes.new_zeros(1), self._sizes.cumsum(0)])
        self.num_factors = flat.num_factors + sum(len(rule.scope) for rule in flat.rules)
        self.num_messages = int(self._starts[-1])

    @classmethod
    def of(cls, flat: FlatField) -> "Layout":
        """The layout of a flat field, kept for others with the same factors where it is small.

        Rules hold numbers, so that the layout of a field with rules belongs to that field alone.
        """
        if flat.rules or flat.scope.numel() > MOST_KEPT:
            return cls(flat)
        return flat.derived.get("layout", lambda: cls(flat))

    @cached_property
    def alike(self) -> list[Alike]:
        """Factors of one shape at a time."""
        device = self.at.device
        alike, first = [], 0
        for block in self.blocks or ((None,) if self.num_tabled else ()):
            count = self.num_tabled if block is None else len(block.factors)
            order = int(self.scope_at[first + 1] - self.scope_at[first])
            factors = first + torch.arange(count, device=device)
            slots = self.scope_at[factors][:, None] + torch.arange(order, device=device)
            alike.append(self._alike(factors, slots, block))
            first += count
        slot = int(self.scope_at[-1])
        for rule in self.rules:
            count, order = rule.scope.shape
            factors = first + torch.arange(count, device=device)
            slots = slot + torch.arange(count * order, device=device).reshape(count, order)
            alike.append(self._alike(factors, slots, rule))
            first, slot = first + count, slot + count * order
        return alike

    def _alike(self, factor: Tensor, slots: Tensor, block: Block) -> Alike:
        shape = self._sizes[slots[0]].tolist()

        def places(start: Tensor) -> tuple[Tensor, ...]:
            columns = zip(start.unbind(1), shape, strict=True)
            return tuple(column[:, None] + torch.arange(size, device=start.device) for column, size in columns)

        scope = self._scope[slots]
        table = None if isinstance(block, RuleBlock) else self.table_at[factor]
        return Alike(factor, scope, tuple(shape), places(self.at[scope]), places(self._starts[slots]), table, block)

    def gathered(self, pieces: list[tuple[Tensor, ...]], like: Tensor) -> Tensor:
        """Messages [R, M] from those of each set of alike factors, for each variable [R, factors, states].

        `like` is any tensor [R, ...] of their kind.
        """
        flat = [piece.flatten(1) for each in pieces for piece in each]
        if not flat:
            return like.new_zeros(len(like), 0)
        return torch.cat(flat, dim=1)[:, self._order]

    @cached_property
    def _order(self) -> Tensor:
        places = [place.flatten() for alike in self.alike for place in alike.message]
        return torch.cat(places).argsort() if places else self.state_of

    @cached_property
    def state_of(self) -> Tensor:
        """[M]: the place along `unary` of the state that each number of the messages is about."""
        shift = self.at[self._scope] - self._starts[:-1]
        return torch.arange(self.num_messages, device=shift.device) + shift[self.slot_of]

    @cached_property
    def factor_of(self) -> Tensor:
        """[M]: the factor that each number of the messages comes from."""
        found = torch.empty(self.num_messages, dtype=torch.long, device=self.at.device)
        for alike in self.alike:
            for message in alike.message:
                found[message] = alike.factor[:, None].expand_as(message)
        return found

    @cached_property
    def slot_of(self) -> Tensor:
        """[M]: which message each number belongs to; messages are numbered in their order."""
        return torch.repeat_interleave(self._sizes, output_size=self.num_messages)

    @cached_property
    def graph_of(self) -> Tensor:
        """[M]: the graph that each number of the messages belongs to."""
        return self.graph[self.variable_of_state[self.state_of]]

    @cached_property
    def variable_of_state(self) -> Tensor:
        """[states of all variables]: which variable each belongs to."""
        return torch.arange(len(self.states), device=self.at.device).repeat_interleave(self.states)
