"""Fields with factors over any few variables, each variable with its own number of states."""

from collections.abc import Hashable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, GraphError, InputError, InputTypeError
from accord.field._changes import check_memory_holds, state_of
from accord.field._checks import (
    broadcast_replicas,
    check_all_values,
    check_graph_count,
    check_labels,
    check_node_form,
    check_state_counts,
    check_values,
)
from accord.field._clamping import clamp_node
from accord.field._field import sum_dtype
from accord.field.factors._groups import AutomatonFactors, FactorGroup, TableFactors
from accord.graphs._checks import check_graph_vector, check_same_device
from accord.graphs._derived import Derived


def _beyond(states: Tensor, width: int) -> Tensor | None:
    """True beyond a variable's own states [nodes, states]; None if all have as many."""
    beyond = torch.arange(width, device=states.device) >= states[:, None]
    return beyond if bool(beyond.any()) else None


class FactorField:
    """Log-potentials of variables, and of factors over any few of them.

    log p(y) = sum_s node[s, y_s] + sum_f factor_f(y at the variables of f) - log Z

    Solved by the same functions as a PairwiseField, with the same conventions for replicas, batches of graphs and -inf.

    Args:
        node: [*replicas, nodes, states], float32 or float64.
        groups: factors of one kind and order each: TableFactors, or rules such as OrFactors.
        graph: [nodes], which graph of a batch a variable belongs to; None for a single graph.
        num_states: [nodes], how many states each variable has; None: all of them.
        num_graphs: how many graphs the batch has; None counts them.
    """

    node: Tensor  # [*replicas, nodes, states]: -inf beyond a variable's own states
    groups: tuple[FactorGroup, ...]
    graph: Tensor  # [nodes]
    states: Tensor  # [nodes]: how many states each variable has
    num_graphs: int
    derived: Derived  # what follows from variables and factors, shared by fields that differ in their numbers only

    @eager
    def __init__(
        self,
        node: Tensor,
        groups: Sequence[FactorGroup] = (),
        graph: Tensor | None = None,
        num_states: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> None:
        where = type(self).__name__
        node = check_node_form(node, where)
        check_memory_holds(where, node=node, graph=graph)
        check_values("node", node, where)
        self.states, self.node = check_state_counts(num_states, node, where)
        self.groups = tuple(self._checked(group, number, where) for number, group in enumerate(groups))
        no_edges = torch.zeros(2, 0, dtype=torch.long, device=node.device)
        self.graph, self.num_graphs = check_graph_vector(graph, no_edges, self.num_nodes, num_graphs, where)
        check_graph_count(self.num_graphs, where)
        for number, group in enumerate(self.groups):
            belongs = self.graph[group.scope]
            crossing = (belongs != belongs[:, :1]).any(1)
            if bool(crossing.any()):
                raise GraphError(
                    f"{where}: factor {int(crossing.nonzero()[0])} of group {number} joins graphs of the batch. "
                    "Give the variables of a factor the same graph number."
                )
        _ = self.replicas  # refuses axes that do not fit together
        self.derived = Derived()
        self._seen = self._now()

    def _checked(self, group: FactorGroup, number: int, where: str) -> FactorGroup:
        """The group in the field's precision, if its factors fit the variables."""
        if not isinstance(group, (TableFactors, AutomatonFactors)):
            raise InputTypeError(
                f"{where}: group {number} is a {type(group).__name__}, not a group of factors. "
                "Give TableFactors or rules such as OrFactors."
            )
        check_same_device(where, node=self.node, scope=group.scope)
        if group.num_factors:
            low, high = int(group.scope.min()), int(group.scope.max())
            if low < 0 or high >= self.num_nodes:
                raise GraphError(
                    f"{where}: group {number} names variable {low if low < 0 else high}, but the field has "
                    f"{self.num_nodes}, numbered from 0."
                )
        counts = self.states[group.scope]  # [factors, order]
        sizes = torch.tensor(list(group.shape), device=counts.device)
        fits = counts <= sizes if isinstance(group, TableFactors) else counts == sizes
        if not bool(fits.all()):
            row, axis = (~fits).nonzero()[0].tolist()
            raise FieldError(
                f"{where}: axis {axis} of group {number} has {int(sizes[axis])} states, but variable "
                f"{int(group.scope[row, axis])} of factor {row} has {int(counts[row, axis])}. Group factors by the "
                "states of their variables."
            )
        if isinstance(group, AutomatonFactors):
            return group if group.final.dtype == self.node.dtype else group.with_values(group.final.to(self.node.dtype))
        if group.tables.dtype != self.node.dtype:
            raise InputTypeError(
                f"{where}: node potentials are {self.node.dtype}, tables of group {number} {group.tables.dtype}. "
                "Convert one of them."
            )
        return group

    def _now(self) -> tuple[Hashable, ...]:
        given = [self.node, self.graph, self.states]
        for group in self.groups:
            given += [group.scope, group.values]
        return tuple(state_of(tensor) for tensor in given)

    def check_changes(self, where: str) -> None:
        """Check the field again if its tensors were changed after the last check.

        Raises:
            InputError: the changed tensors do not make a field.
        """
        if self._seen == self._now():
            return
        try:
            groups = [group.with_values(group.values) for group in self.groups]
            again = FactorField(self.node, groups, self.graph, self.states, self.num_graphs)
        except InputError as error:
            raise type(error)(
                f"{where}: the field's tensors were changed after it was built, and no longer fit. {error}"
            ) from error
        fresh = self._taken(again)
        self.__dict__.clear()
        self.__dict__.update(fresh.__dict__)

    @property
    def num_nodes(self) -> int:
        """How many variables, in all graphs together."""
        return int(self.node.shape[-2])

    @property
    def num_states(self) -> int:
        """The largest number of states of a variable."""
        return int(self.node.shape[-1])

    @property
    def num_factors(self) -> int:
        """How many factors, in all groups together."""
        return sum(group.num_factors for group in self.groups)

    @cached_property
    def replicas(self) -> torch.Size:
        """Common shape of the replica axes; empty for an ordinary field."""
        axes = {f"group {number}": group.replicas for number, group in enumerate(self.groups)}
        return broadcast_replicas(type(self).__name__, node=self.node.shape[:-2], **axes)

    @eager
    def with_potentials(self, node: Tensor | None = None, values: Sequence[Tensor | None] = ()) -> "FactorField":
        """The same variables and factors with other numbers.

        Args:
            node: [*replicas, nodes, states].
            values: one entry for each group: tables of TableFactors, final scores of AutomatonFactors; None keeps them.
        """
        given = tuple(values) or (None,) * len(self.groups)
        if len(given) != len(self.groups):
            raise FieldError(
                f"FactorField.with_potentials: values has {len(given)} entries, but the field has {len(self.groups)} "
                "groups. Give one for each, or None."
            )
        if self._has_form(node, given):
            return self._with_numbers(node, given)
        groups = [g if v is None else g.with_values(v) for g, v in zip(self.groups, given, strict=True)]
        kept = self.node if node is None else node
        return self._taken(FactorField(kept, groups, self.graph, self.states, self.num_graphs))

    def _has_form(self, node: object, values: Sequence[object]) -> bool:
        """Whether new numbers are tensors of the same precision and axes, replicas aside."""

        def alike(given: object, axes: torch.Size) -> bool:
            return (
                isinstance(given, Tensor)
                and given.dtype == self.node.dtype
                and given.device == self.node.device
                and given.layout == torch.strided
                and given.shape[max(given.dim() - len(axes), 0) :] == axes
            )

        return (node is None or alike(node, self.node.shape[-2:])) and all(
            value is None or alike(value, group.value_axes) for group, value in zip(self.groups, values, strict=True)
        )

    def _with_numbers(self, node: Tensor | None, values: Sequence[Tensor | None]) -> "FactorField":
        """The same field with other numbers, of which only these are checked."""
        where = type(self).__name__
        given = [] if node is None else [("node", node, where)]
        given += [
            ("table" if isinstance(group, TableFactors) else "final", value, type(group).__name__)
            for group, value in zip(self.groups, values, strict=True)
            if value is not None
        ]
        for name, tensor, who in given:
            check_memory_holds(who, **{name: tensor})
        check_all_values(given)
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("replicas", None)
        seen = list(self._seen)  # variables and factors count as they were checked, also if they changed since
        if node is not None:
            beyond = self.derived.get("beyond", lambda: _beyond(self.states, self.num_states))
            other.node = node if beyond is None else node.masked_fill(beyond, -torch.inf)
            seen[0] = state_of(other.node)
        groups = list(self.groups)
        for number, value in enumerate(values):
            if value is not None:
                groups[number] = groups[number].with_checked(value)
                seen[4 + 2 * number] = state_of(value)
        other.groups = tuple(groups)
        other._seen = tuple(seen)
        _ = other.replicas  # refuses axes that do not fit together
        return other

    def _taken(self, field: "FactorField") -> "FactorField":
        """A field with the same factors, as one of this kind."""
        return field

    def to(self, target: torch.device | str | torch.dtype) -> "FactorField":
        """The same field on another device or in another precision."""
        groups: list[FactorGroup] = []
        for group in self.groups:
            values = group.values.to(target)
            if isinstance(target, torch.dtype):
                groups.append(group.with_values(values))
            elif isinstance(group, TableFactors):
                table = None if group.table is None else group.table.to(target)
                groups.append(TableFactors(group.scope.to(target), values, table))
            else:
                groups.append(AutomatonFactors(group.scope.to(target), group.transitions.to(target), values))
        if isinstance(target, torch.dtype):
            return self._taken(FactorField(self.node.to(target), groups, self.graph, self.states, self.num_graphs))
        graph, states = self.graph.to(target), self.states.to(target)
        return self._taken(FactorField(self.node.to(target), groups, graph, states, self.num_graphs))

    def score(self, labels: Tensor) -> Tensor:
        """Unnormalised log-probability of a labelling, one for each graph: [*leading, graphs].

        Args:
            labels: [*leading, nodes]; leading axes broadcast against the replicas.
        """
        where = "FactorField.score"
        labels = check_labels(labels, self.num_nodes, self.num_states, 0, where)
        check_same_device(where, node=self.node, labels=labels)
        lead = broadcast_replicas(where, labels=labels.shape[:-1], field=self.replicas)
        labels = labels.expand(*lead, self.num_nodes)
        node = self.node.expand(*lead, *self.node.shape[-2:]).gather(-1, labels[..., None])[..., 0]
        total = node.new_zeros(*lead, self.num_graphs, dtype=sum_dtype(node.device))
        total = total.index_add(-1, self.graph, node.to(total.dtype))
        # A label beyond a variable's own states scores -inf there; its factors are read at the last state instead.
        existing = torch.minimum(labels, self.states - 1)
        for group in self.groups:
            score = group.score(existing, lead)
            total = total.index_add(-1, self.graph[group.scope[:, 0]], score.to(total.dtype))
        return total.to(node.dtype)

    def clamp(self, labels: Tensor) -> "FactorField":
        """Fix known labels: all other states of those variables become forbidden.

        Args:
            labels: [*replicas, nodes]; -1 leaves a variable free.
        """
        return self.with_potentials(node=clamp_node(self.node, self.replicas, labels, "FactorField.clamp"))
