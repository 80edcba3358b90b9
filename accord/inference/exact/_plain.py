"""Elimination of variables in plain torch, for factors over any few of them: the version that compiled code is tested
against, and that gradients of beliefs use.

Every variable has a clique: itself and the variables around it when it is eliminated. Tables have one axis for each
variable of the clique, in that order, and hold its possible states only. All values are logs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from accord.field.factors import FlatField
from accord.inference._semiring import REDUCE, Reduction
from accord.inference.exact._limits import Limits, too_large_clique, too_large_tables
from accord.inference.exact._order import find_cliques
from accord.inference.exact._solution import Solution, table_sizes


@dataclass(frozen=True, eq=False)
class Piece:
    """A table [R or 1, states, ...] over some variables: a factor, or a message."""

    scope: tuple[int, ...]
    table: Tensor

    def along(self, clique: Sequence[int]) -> Tensor:
        """The table with the axes of a clique that contains the scope; axes of other variables have length 1."""
        order = sorted(range(len(self.scope)), key=lambda axis: clique.index(self.scope[axis]))
        table = self.table.permute(0, *(axis + 1 for axis in order))
        for axis, node in enumerate(clique):
            if node not in self.scope:
                table = table.unsqueeze(axis + 1)
        return table

    def onto(self, scope: Sequence[int], reduce: Reduction) -> Tensor:
        """Reduce to some of the variables, with one axis for each in the order given."""
        others = tuple(axis + 1 for axis, node in enumerate(self.scope) if node not in scope)
        table = reduce(self.table, others) if others else self.table
        kept = [node for node in self.scope if node in scope]
        return table.permute(0, *(kept.index(node) + 1 for node in scope))


@dataclass(frozen=True, eq=False)
class Buckets:
    """A flat field ready for elimination."""

    flat: FlatField
    states: list[Tensor]  # possible states of each variable
    cliques: list[list[int]]  # in order of elimination, the eliminated variable first
    factors: list[Piece]  # over variables with several possible states, or over a single one

    @property
    def rank(self) -> dict[int, int]:
        """Position of each variable in the order."""
        return {clique[0]: position for position, clique in enumerate(self.cliques)}

    def collect(self, reduce: Reduction) -> tuple[list[Piece], list[Tensor], Tensor]:
        """Tables of the cliques, what each sends, and log Z or the best score [R, graphs].

        m(x_S) = reduce over x_v of [ theta_v(x_v) + factors + messages of the children ]
        """
        flat, rank = self.flat, self.rank
        arrived: dict[int, list[Piece]] = {clique[0]: [] for clique in self.cliques}
        for factor in self.factors:
            arrived[min(factor.scope, key=rank.__getitem__)].append(factor)
        tables, outgoing = [], []
        totals = flat.unary.new_zeros(len(flat.unary), flat.num_graphs)
        for clique in self.cliques:
            node, *around = clique
            own = flat.unary[:, flat.at[node] + self.states[node]]
            table = Piece((node,), own).along(clique).expand(-1, *(len(self.states[member]) for member in clique))
            for piece in arrived[node]:
                table = table + piece.along(clique)
            sent = reduce(table, 1)
            tables.append(Piece(tuple(clique), table))
            outgoing.append(sent)
            peak = sent.detach().flatten(1).amax(1) if around else sent
            # Only differences matter to the parent; sums that grow along a chain would lose precision.
            totals = totals.index_add(1, flat.graph[[node]], peak[:, None])
            if around:
                shift = peak.clamp_min(torch.finfo(peak.dtype).min).reshape(-1, *[1] * len(around))
                arrived[min(around, key=rank.__getitem__)].append(Piece(tuple(around), sent - shift))
        return tables, outgoing, totals

    def distribute(self, tables: list[Piece], outgoing: list[Tensor], reduce: Reduction) -> dict[int, Piece]:
        """Beliefs of the cliques: b(x_v, x_S) = table(x_v, x_S) - outgoing(x_S) + parent's b(x_S)."""
        rank = self.rank
        beliefs: dict[int, Piece] = {}
        for piece, sent in zip(reversed(tables), reversed(outgoing), strict=True):
            node, *around = piece.scope
            # Where `sent` is -inf, so is every entry of the table that it came from.
            belief = piece.table - sent.masked_fill(sent == -torch.inf, 0.0).unsqueeze(1)
            if around:
                belief = belief + beliefs[min(around, key=rank.__getitem__)].onto(around, reduce).unsqueeze(1)
            beliefs[node] = Piece(piece.scope, belief)
        return beliefs

    def backtrack(self, tables: list[Piece], choose: Callable[[Tensor], Tensor], num_samples: int = 1) -> Tensor:
        """Label the variables from the roots outwards, each given those around it: [num_samples, R, nodes].

        Args:
            tables: from `collect`.
            choose: from log-potentials [..., states] to a state [...].
            num_samples: how many labellings to make.
        """
        replicas = len(self.flat.unary)
        choice = self.flat.graph.new_zeros(num_samples, replicas, self.flat.num_nodes)
        labels = torch.zeros_like(choice)
        each = torch.arange(replicas, device=choice.device)
        for piece in reversed(tables):
            node, *around = piece.scope
            table = piece.table.movedim(1, -1).detach().expand(replicas, *piece.table.shape[2:], -1)
            given = table[(each, *(choice[:, :, other] for other in around))]
            choice[:, :, node] = choose(given.expand(num_samples, -1, -1))
            labels[:, :, node] = self.states[node][choice[:, :, node]]
        return labels


def solve_plain(flat: FlatField, semiring: str, limits: Limits) -> Solution:
    """Totals, beliefs and best labels; differentiable.

    Raises:
        TooLargeError: the field is too wide for the limits.
    """
    reduce = REDUCE[semiring]
    buckets = make_buckets(flat, limits)
    tables, outgoing, totals = buckets.collect(reduce)
    with torch.no_grad():
        best = tables if semiring == "max" else buckets.collect(REDUCE["max"])[0]
        labels = buckets.backtrack(best, lambda given: given.argmax(-1))[0]
    beliefs = buckets.distribute(tables, outgoing, reduce)
    rank = buckets.rank
    unary = [
        _spread(beliefs[node].onto((node,), reduce), [int(flat.states[node])], [states], reduce)
        for node, states in enumerate(buckets.states)
    ]
    factors = []
    for number, factor in enumerate(buckets.factors):
        scope = flat.scope[flat.scope_at[number] : flat.scope_at[number + 1]].tolist()
        belief = beliefs[min(factor.scope, key=rank.__getitem__)].onto(factor.scope, reduce)
        shape = [len(buckets.states[node]) for node in scope]
        belief = belief.reshape(-1, *shape)  # also with the axes of variables that have one possible state
        factors.append(
            _spread(belief, flat.states[scope].tolist(), [buckets.states[node] for node in scope], reduce).flatten(1)
        )
    empty = flat.unary[:, :0]
    return Solution(totals, torch.cat([empty, *unary], 1), torch.cat([empty, *factors], 1), labels)


def make_buckets(flat: FlatField, limits: Limits) -> Buckets:
    """Choose an order, and cut tables to possible states."""
    possible = (flat.unary.detach() > -torch.inf).any(0)
    states = []
    for first, last in zip(flat.at[:-1].tolist(), flat.at[1:].tolist(), strict=True):
        found = possible[first:last].nonzero().flatten()
        states.append(found if len(found) else found.new_zeros(1))  # infeasible, which the totals show
    factors, pairs = [], set()
    for number, size in enumerate(table_sizes(flat).tolist()):
        scope = flat.scope[flat.scope_at[number] : flat.scope_at[number + 1]].tolist()
        start = int(flat.table_at[number])
        table = flat.tables[:, start : start + size].reshape(-1, *flat.states[scope].tolist())
        for axis, node in enumerate(scope):
            table = table.index_select(axis + 1, states[node])
        free = [node for node in scope if len(states[node]) > 1] or scope[:1]
        factors.append(Piece(tuple(free), table.reshape(-1, *(len(states[node]) for node in free))))
        pairs |= {(min(a, b), max(a, b)) for a in free for b in free if a != b}
    edge_index = torch.tensor(sorted(pairs), dtype=torch.long).reshape(-1, 2).t()
    replicas = max(len(flat.unary), 1)
    cliques = find_cliques(edge_index, flat.num_nodes, max((limits.one // replicas).bit_length(), 2))
    sizes = [[len(states[node]) for node in clique] for clique in cliques]
    too_large = [counts for counts in sizes if replicas * prod(counts) > limits.one]
    if too_large:
        raise too_large_clique(min(too_large, key=prod), replicas, limits)
    together = replicas * sum(prod(counts) for counts in sizes if len(counts) > 2)
    if together > limits.all:
        raise too_large_tables(max(map(len, sizes)), together, limits)
    return Buckets(flat, states, cliques, factors)


def _spread(belief: Tensor, shape: list[int], states: list[Tensor], reduce: Reduction) -> Tensor:
    """Normalised beliefs [R, possible states, ...] with -inf for other states."""
    belief = belief - reduce(belief, tuple(range(1, belief.dim())), keepdim=True)
    for axis, (size, kept) in enumerate(zip(shape, states, strict=True)):
        if len(kept) < size:
            full = belief.new_full((*belief.shape[: axis + 1], size, *belief.shape[axis + 2 :]), -torch.inf)
            belief = full.index_copy(axis + 1, kept, belief)
    return belief
