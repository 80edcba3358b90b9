"""Chains: sequences whose neighbouring positions are linked, many of them at once."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import InfeasibleError, InputError
from accord.field._chain_checks import (
    check_chain_forms,
    check_chain_labels,
    check_lengths,
    expand_tables,
)
from accord.field._changes import check_memory_holds, state_of
from accord.field._checks import broadcast_replicas, check_values
from accord.field._field import PairwiseField, sum_dtype
from accord.graphs._checks import check_room


@dataclass(frozen=True, eq=False)
class ChainField:
    """Log-potentials of linear-chain CRFs: a batch of chains, each a path of positions.

    log p(y) = start[y_1] + sum_t node[t, y_t] + sum_t edge[t, y_t, y_t+1] + end[y_last] - log Z

    `edge` broadcasts against [*replicas, chains, length - 1, states, states] as torch broadcasts: [states, states] is
    shared by all steps of all chains, [length - 1, states, states] by all chains, [replicas, 1, 1, states, states] by
    the chains of a replica. `start` and `end` broadcast against [*replicas, chains, states]. -inf means forbidden;
    NaN, +inf and numbers whose sums could overflow are refused.

    Args:
        node: [*replicas, chains, length, states], float32 or float64.
        edge: [states of a position, states of the next], or with more axes, see above; same dtype.
        lengths: [chains], 1 to `length`; None if all chains are full. Potentials beyond a chain's length are ignored.
        start: scores of the first state of a chain, [states] or with more axes; None for none.
        end: the same of the last state.
    """

    node: Tensor
    edge: Tensor
    lengths: Tensor = field(default=None)  # type: ignore[assignment]  # filled in below: never None after that
    start: Tensor | None = None
    end: Tensor | None = None

    @eager
    def __post_init__(self) -> None:
        where = "ChainField"
        given = {"node": self.node, "edge": self.edge, "start": self.start, "end": self.end}
        replicas = check_chain_forms(self.node, self.edge, self.start, self.end, where)
        check_memory_holds(where, **given, lengths=self.lengths)
        for name, values in given.items():
            if values is not None:
                check_values(name, values, where)
        lengths, ragged = check_lengths(self.lengths, self.num_chains, self.length, self.node.device, where)
        object.__setattr__(self, "lengths", lengths)
        self.__dict__["is_ragged"] = ragged
        self.__dict__["replicas"] = replicas
        self.__dict__["_checked"] = self.version

    is_ragged = False  # whether some chain is shorter than `length`
    replicas = torch.Size()  # common shape of the replica axes; empty for an ordinary field

    @property
    def version(self) -> tuple[Hashable, ...]:
        """A value that differs after torch changed one of the field's tensors."""
        given = (self.node, self.edge, self.lengths, self.start, self.end)
        return tuple(state_of(tensor) for tensor in given if tensor is not None)

    def check_changes(self, where: str) -> None:
        """Check the field again if its tensors were changed after the last check.

        Raises:
            InputError: the changed tensors do not make a field.
        """
        if self.__dict__.get("_checked") == self.version:
            return
        self.__dict__.pop("present", None)
        try:
            self.__post_init__()
        except InputError as error:
            raise type(error)(
                f"{where}: the field's tensors were changed after it was built, and no longer fit. {error}"
            ) from error

    @property
    def num_chains(self) -> int:
        """How many chains."""
        return int(self.node.shape[-3])

    @property
    def length(self) -> int:
        """Positions of the longest chain that the field has room for."""
        return int(self.node.shape[-2])

    @property
    def num_states(self) -> int:
        """How many values a label can take."""
        return int(self.node.shape[-1])

    @cached_property
    def present(self) -> Tensor:
        """[chains, length]: whether a position lies within its chain."""
        return torch.arange(self.length, device=self.lengths.device) < self.lengths[:, None]

    def with_potentials(
        self,
        node: Tensor | None = None,
        edge: Tensor | None = None,
        start: Tensor | None = None,
        end: Tensor | None = None,
    ) -> "ChainField":
        """The same chains with other potentials; None keeps those of this field."""
        return ChainField(
            self.node if node is None else node,
            self.edge if edge is None else edge,
            self.lengths,
            self.start if start is None else start,
            self.end if end is None else end,
        )

    def to(self, target: torch.device | str | torch.dtype) -> "ChainField":
        """The same field on another device or in another precision."""
        lengths = self.lengths if isinstance(target, torch.dtype) else self.lengths.to(target)
        start, end = (None if values is None else values.to(target) for values in (self.start, self.end))
        return ChainField(self.node.to(target), self.edge.to(target), lengths, start, end)

    def score(self, labels: Tensor) -> Tensor:
        """Unnormalised log-probability of a labelling, one for each chain.

        Args:
            labels: [*leading, chains, length]; leading axes broadcast against the replicas. Whatever stands beyond a
                chain's length is ignored.

        Returns:
            [*leading, chains].
        """
        where = "ChainField.score"
        labels = check_chain_labels(labels, self, 0, where)
        lead = broadcast_replicas(where, labels=labels.shape[:-2], field=self.replicas)
        labels = labels.expand(*lead, *labels.shape[-2:])
        wide = sum_dtype(self.node.device)
        node = self.node.expand(*lead, *self.node.shape[-3:]).gather(-1, labels[..., None])[..., 0].to(wide)
        pairs = labels[..., :-1] * self.num_states + labels[..., 1:]
        edge = _pick(self.edge.flatten(-2), pairs, 2).to(wide)
        if self.is_ragged:
            node = node.masked_fill(~self.present, 0.0)
            edge = edge.masked_fill(~self.present[:, 1:], 0.0)
        total = node.sum(-1) + edge.sum(-1)
        if self.start is not None:
            total = total + _pick(self.start, labels[..., 0], 1).to(wide)
        if self.end is not None:
            last = labels.gather(-1, (self.lengths - 1).expand(*lead, -1)[..., None])[..., 0]
            total = total + _pick(self.end, last, 1).to(wide)
        return total.to(self.node.dtype)

    def clamp(self, labels: Tensor) -> "ChainField":
        """Fix known labels: all other states of those positions become forbidden.

        Args:
            labels: [*replicas, chains, length]; -1 leaves a position free.
        """
        where = "ChainField.clamp"
        labels = check_chain_labels(labels, self, -1, where)
        lead = broadcast_replicas(where, labels=labels.shape[:-2], field=self.replicas)
        labels = labels.masked_fill(~self.present, -1)[..., None]
        other = (labels >= 0) & (labels != torch.arange(self.num_states, device=labels.device))
        node = self.node.expand(*lead, *self.node.shape[-3:]).masked_fill(other, -torch.inf)
        empty = ((node == -torch.inf).all(-1) & (labels[..., 0] >= 0)).nonzero()
        if len(empty):
            chain, position = empty[0, -2:].tolist()
            raise InfeasibleError(
                f"{where}: position {position} of chain {chain} is clamped to a state that the field forbids. "
                "Clamp it to another state or leave it free (-1)."
            )
        return self.with_potentials(node=node)

    def to_pairwise(self) -> PairwiseField:
        """The same chains as a batch of path graphs. Positions beyond a chain's length do not exist there.

        Nodes are numbered chain by chain, from each first position to the last; graph c is chain c.
        """
        node, edge = self._with_ends(), expand_tables(self)
        positions = self.present.flatten().nonzero().flatten()
        linked = self.present[:, 1:]
        place = self.present.flatten().cumsum(0).reshape(self.present.shape) - 1
        near = place[:, :-1][linked]
        steps = linked.flatten().nonzero().flatten()
        numbers = self.replicas.numel() * len(steps) * self.num_states**2
        check_room("ChainField.to_pairwise", f"{len(steps)} tables", numbers * node.element_size(), node.device)
        return PairwiseField(
            torch.stack([near, near + 1]),
            node.flatten(-3, -2)[..., positions, :],
            edge.flatten(-4, -3)[..., steps, :, :],
            torch.arange(self.num_chains, device=near.device).repeat_interleave(self.lengths),
            self.num_chains,
        )

    def _with_ends(self) -> Tensor:
        """Node potentials [*replicas, chains, length, states] with those of start and end."""
        node = self.node.expand(*self.replicas, *self.node.shape[-3:])
        place = torch.arange(self.length, device=node.device)[:, None]
        if self.start is not None:
            node = torch.where(place == 0, node + self.start[..., None, :], node)
        if self.end is not None:
            last = place == (self.lengths - 1)[:, None, None]
            node = torch.where(last, node + self.end[..., None, :], node)
        return node


def _pick(values: Tensor, index: Tensor, axes: int) -> Tensor:
    """Entries `index` [..., *axes] of values [..., *axes, entries] that broadcast against it.

    Picked from the numbers as they are stored, so that the gradient is no larger than `values`.
    """
    if values.dim() > axes + 1 or any(size > 1 for size in values.shape[:-1]):
        rows = torch.arange(values.shape[:-1].numel(), device=index.device).reshape(values.shape[:-1])
        index = index + rows * values.shape[-1]
    return values.reshape(-1).index_select(0, index.reshape(-1)).reshape(index.shape)
