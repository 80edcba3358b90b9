"""The pairwise conditional random field."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from accord._eager import eager
from accord.errors import FieldError, InputError, InputTypeError, OptionError
from accord.field._changes import check_memory_holds, state_of
from accord.field._checks import (
    broadcast_replicas,
    check_edge_count,
    check_edges_once,
    check_forms,
    check_graph_count,
    check_labels,
    check_potentials,
    check_state_counts,
)
from accord.field._clamping import clamp_node
from accord.field._forbidding import barred_pairs, chosen_edges
from accord.field._structure import Structure
from accord.graphs._checks import (
    check_edge_index,
    check_graph_room,
    check_graph_vector,
    check_room,
    check_same_device,
)
from accord.graphs.structure._peeling import Peeling

_KEPT = ("edge_index", "graph", "num_graphs", "structure", "node", "edge", "_counts")  # by fields with other potentials

if TYPE_CHECKING:
    from accord.field.factors import RaggedField


def sum_dtype(device: torch.device) -> torch.dtype:
    """Precision for sums of many terms: float64 where the device has it. A float32 sum of a million terms drifts."""
    return torch.float32 if device.type == "mps" else torch.float64


@dataclass(frozen=True, eq=False, init=False)
class PairwiseField:
    """Log-potentials of a pairwise CRF on one graph, or on a batch of graphs (Eq. 2).

    log p(y) = sum_s node[s, y_s] + sum_(s,t) edge[(s,t), y_s, y_t] - log Z

    Every undirected edge appears once; its table is indexed [state of source, state of target]. Leading replica
    axes hold many fields on the same graph; node and edge potentials broadcast against each other. -inf means
    forbidden; NaN, +inf and numbers whose sums could overflow are refused.

    Args:
        edge_index: [2, edges].
        node: [*replicas, nodes, states], float32 or float64.
        edge: [*replicas, edges, states, states], same dtype.
        graph: [nodes], which graph of a batch a node belongs to; None for a single graph.
        num_graphs: how many graphs the batch has; None counts them, which misses graphs without nodes at the end.
        num_states: [nodes], how many states each node has; None: all of them. Potentials beyond a node's own states
            are ignored. `PairwiseField.ragged` takes tables without those entries.
    """

    edge_index: Tensor
    node: Tensor  # -inf beyond a node's own states
    edge: Tensor
    graph: Tensor
    num_graphs: int
    structure: Structure = field(repr=False)  # the graphs as they were checked, and what follows from them
    _counts: Tensor | None = field(repr=False)  # how many states each node has, if they were given
    _checked: tuple[Hashable, Hashable] = field(repr=False)  # the state of node and edge at the last check

    def __init__(
        self,
        edge_index: Tensor,
        node: Tensor,
        edge: Tensor,
        graph: Tensor | None = None,
        num_graphs: int | None = None,
        num_states: Tensor | None = None,
    ) -> None:
        given = {"edge_index": edge_index, "node": node, "edge": edge, "graph": graph}
        self.__dict__.update(given, num_graphs=num_graphs, _counts=num_states)
        self._check()

    @eager
    def _check(self) -> None:
        where = "PairwiseField"
        check_forms(self.node, self.edge, where)
        check_memory_holds(where, node=self.node, edge=self.edge, edge_index=self.edge_index, graph=self.graph)
        check_edge_count(self.edge_index, self.edge, where)
        check_graph_room(where, self.num_nodes, self.edge_index)
        check_potentials(where, node=self.node, edge=self.edge)
        edge_index = check_edge_index(self.edge_index, self.num_nodes, where)
        check_same_device(where, edge_index=edge_index, node=self.node)
        graph, num_graphs = check_graph_vector(self.graph, edge_index, self.num_nodes, self.num_graphs, where)
        check_graph_count(num_graphs, where)
        check_edges_once(edge_index, graph, num_graphs, where)
        if self._counts is not None:
            counts, node = check_state_counts(self._counts, self.node, where)
            self.__dict__.update(_counts=counts, node=node)
        self.__dict__.update(edge_index=edge_index, graph=graph, num_graphs=num_graphs)
        self.__dict__["structure"] = Structure(edge_index, graph, num_graphs, self.num_nodes)
        self.__dict__["_checked"] = state_of(self.node), state_of(self.edge)

    @staticmethod
    def ragged(
        edge_index: Tensor,
        node: Sequence[Tensor],
        edge: Sequence[Tensor],
        graph: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> "RaggedField":
        """A field whose nodes have different numbers of states. Tables are stored as they are, never padded.

        Args:
            edge_index: [2, edges].
            node: for each node its potentials [*replicas, states].
            edge: for each edge its table [*replicas, states of source, states of target].
            graph: [nodes], which graph of a batch a node belongs to; None for a single graph.
            num_graphs: how many graphs the batch has; None counts them.
        """
        from accord.field.factors import RaggedField  # a kind of field with factors, which are built on this one

        return RaggedField(edge_index, node, edge, graph, num_graphs)

    def check_changes(self, where: str) -> None:
        """Check the field again if its tensors were changed after the last check.

        Changed potentials are used as they are now, if they pass. The field itself is never copied.

        Raises:
            InputError: the changed tensors do not make a field.
        """
        if self._checked == (state_of(self.node), state_of(self.edge)) and self.structure.is_current():
            return
        self.__dict__.pop("replicas", None)
        try:
            self._check()
        except InputError as error:
            raise type(error)(
                f"{where}: the field's tensors were changed after it was built, and no longer fit. {error}"
            ) from error

    @property
    def num_nodes(self) -> int:
        """How many nodes, in all graphs together."""
        return int(self.node.shape[-2])

    @property
    def num_edges(self) -> int:
        """How many undirected edges, in all graphs together."""
        return int(self.edge_index.shape[1])

    @property
    def num_states(self) -> int:
        """How many values a label can take; where nodes differ, the most."""
        return int(self.node.shape[-1])

    @property
    def states(self) -> Tensor:
        """[nodes]: how many states each node has."""
        if self._counts is not None:
            return self._counts
        return torch.full((self.num_nodes,), self.num_states, device=self.node.device)

    @cached_property
    def replicas(self) -> torch.Size:
        """Common shape of the replica axes; empty for an ordinary field."""
        return broadcast_replicas("PairwiseField", node=self.node.shape[:-2], edge=self.edge.shape[:-3])

    @property
    def peeling(self) -> Peeling:
        """Which nodes belong to trees attached to the graph, and which form its core."""
        return self.structure.peeling

    def expanded(self) -> tuple[Tensor, Tensor]:
        """Node [R, nodes, states] and edge [R, edges, states, states] potentials, all replica axes merged into one."""
        if not self.replicas:
            return self.node[None], self.edge[None]
        node = self.node.expand(*self.replicas, *self.node.shape[-2:])
        edge = self.edge.expand(*self.replicas, *self.edge.shape[-3:])
        count = self.replicas.numel()
        if len(self.replicas) > 1:  # merging expanded axes makes a copy
            numbers = count * (math.prod(node.shape[-2:]) + math.prod(edge.shape[-3:]))
            check_room("PairwiseField", f"{count} replicas", numbers * node.element_size(), node.device)
        return node.reshape(count, *node.shape[-2:]), edge.reshape(count, *edge.shape[-3:])

    @eager
    def with_potentials(self, node: Tensor | None = None, edge: Tensor | None = None) -> "PairwiseField":
        """The same graphs with other potentials: only these are checked, and what follows from the graphs is shared."""
        where = "PairwiseField.with_potentials"
        given = {name: values for name, values in (("node", node), ("edge", edge)) if values is not None}
        other = object.__new__(PairwiseField)
        other.__dict__.update({name: self.__dict__[name] for name in _KEPT}, **given)
        check_forms(other.node, other.edge, where)
        check_memory_holds(where, **given)
        check_potentials(where, **given)
        check_same_device(where, edge_index=other.edge_index, node=other.node)
        check_edge_count(other.edge_index, other.edge, where)
        if other.num_nodes != self.structure.num_nodes:
            raise FieldError(
                f"{where}: the graph has {self.structure.num_nodes} nodes, the new node potentials "
                f"{other.num_nodes}. Build a new PairwiseField for another graph."
            )
        if node is not None and self._counts is not None:
            other.__dict__["node"] = check_state_counts(self._counts, node, where)[1]
        checked = self._checked
        states = (checked[0] if node is None else state_of(other.node), checked[1] if edge is None else state_of(edge))
        other.__dict__["_checked"] = states
        return other

    def to(self, target: torch.device | str | torch.dtype) -> "PairwiseField":
        """The same field on another device or in another precision."""
        where = "PairwiseField.to"
        if isinstance(target, torch.dtype):  # only potentials have a precision
            node, edge = self.node.to(target), self.edge.to(target)
            return PairwiseField(self.edge_index, node, edge, self.graph, self.num_graphs, self._counts)
        if not isinstance(target, (torch.device, str)):
            raise InputTypeError(
                f"{where}: got a {type(target).__name__}, not a device or a dtype. Give e.g. 'cuda' or torch.float64."
            )
        try:
            index, node, edge, graph = (t.to(target) for t in (self.edge_index, self.node, self.edge, self.graph))
            counts = None if self._counts is None else self._counts.to(target)
        except (RuntimeError, AssertionError) as error:  # torch raises these for a device that does not exist
            raise OptionError(
                f"{where}: the field cannot be moved to {str(target)!r} ({error}). "
                "Name a device that torch can use here."
            ) from error
        return PairwiseField(index, node, edge, graph, self.num_graphs, counts)

    def score(self, labels: Tensor) -> Tensor:
        """Unnormalised log-probability of a labelling, one for each graph.

        Args:
            labels: [*leading, nodes]; leading axes broadcast against the replicas, so many labellings can be
                scored at once.

        Returns:
            [*leading, graphs].
        """
        where = "PairwiseField.score"
        labels = check_labels(labels, self.num_nodes, self.num_states, 0, where)
        check_same_device(where, node=self.node, labels=labels)
        lead = broadcast_replicas(where, labels=labels.shape[:-1], field=self.replicas)
        labels = labels.expand(*lead, self.num_nodes)
        node = self.node.expand(*lead, *self.node.shape[-2:]).gather(-1, labels[..., None])[..., 0]
        pair = labels[..., self.edge_index[0]] * self.num_states + labels[..., self.edge_index[1]]
        edge = self.edge.flatten(-2).expand(*lead, self.num_edges, -1).gather(-1, pair[..., None])[..., 0]
        wide = sum_dtype(node.device)
        total = node.new_zeros(*lead, self.num_graphs, dtype=wide)
        total = total.index_add(-1, self.graph, node.to(wide))
        return total.index_add(-1, self.graph[self.edge_index[0]], edge.to(wide)).to(node.dtype)

    def clamp(self, labels: Tensor) -> "PairwiseField":
        """Fix known labels: all other states of those nodes become forbidden.

        Args:
            labels: [*replicas, nodes]; -1 leaves a node free.
        """
        return self.with_potentials(node=clamp_node(self.node, self.replicas, labels, "PairwiseField.clamp"))

    def forbid(
        self, pairs: Tensor | Sequence[tuple[int, int]], edges: Tensor | None = None, symmetric: bool = True
    ) -> "PairwiseField":
        """Rule out pairs of states on the two ends of an edge.

        Args:
            pairs: [pairs, 2] states (a, b).
            edges: columns of edge_index they apply to; None for every edge.
            symmetric: (a, b) also rules out (b, a), since an undirected edge has no first end. If False, a pair is
                (state of source, state of target) in the edge's stored direction, as sequences need.
        """
        where = "PairwiseField.forbid"
        barred = barred_pairs(pairs, symmetric, self.num_states, where)
        if barred is None:
            return self
        barred = barred.to(self.edge.device)
        if edges is not None:
            barred = chosen_edges(edges, self.num_edges, where).to(barred.device)[:, None, None] & barred
        return self.with_potentials(edge=self.edge.masked_fill(barred, -torch.inf))
