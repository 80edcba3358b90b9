"""From any edge index to undirected edges held once, and the arcs that messages travel on."""

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.graphs._checks import (
    check_count,
    check_edge_index,
    check_graph_room,
    check_graph_vector,
    check_same_device,
    check_tensor,
)
from accord.graphs._derived import Derived, Value

log = logging.getLogger("accord.graphs")


@dataclass(frozen=True)
class Arcs:
    """The two directions of every edge: arc `e` runs along edge `e` as stored, arc `edges + e` against it.

    Lists of arcs are made at first use: on large graphs each takes as much memory as the edge index.
    """

    edge_index: Tensor  # [2, edges]: each undirected edge once

    @classmethod
    def along(cls, edge_index: Tensor) -> "Arcs":
        """Both directions of edges that are listed once."""
        return cls(edge_index)

    @property
    def num_edges(self) -> int:
        """How many edges there are; half as many as arcs."""
        return int(self.edge_index.shape[1])

    @cached_property
    def source(self) -> Tensor:
        """Where each arc starts [arcs]."""
        return self.edge_index.flatten()

    @cached_property
    def target(self) -> Tensor:
        """Where each arc ends [arcs]."""
        return self.edge_index.flip(0).flatten()

    @cached_property
    def reverse(self) -> Tensor:
        """The arc that runs the other way [arcs]."""
        return torch.arange(2 * self.num_edges, device=self.edge_index.device).roll(self.num_edges)

    def target_of(self, arc: int) -> int:
        """Where one arc ends."""
        against, edge = divmod(arc, self.num_edges)
        return int(self.edge_index[1 - against, edge])


@dataclass(frozen=True)
class Topology:
    """Nodes and undirected edges of one graph, or of a batch of graphs.

    An edge keeps the direction in which it first appeared, for scorers that use it, and the column of the input that it
    came from, so that its attributes can be found.
    """

    num_nodes: int
    edge_index: Tensor  # [2, edges]: each undirected edge once, no self-loops
    column: Tensor  # [edges]: column of the input where the edge first appeared
    graph: Tensor  # [nodes]: which graph of the batch
    num_graphs: int
    notes: tuple[str, ...] = ()  # what was cleaned up, in words
    _derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)

    @property
    def num_edges(self) -> int:
        """How many undirected edges there are."""
        return int(self.edge_index.shape[1])

    @cached_property
    def arcs(self) -> Arcs:
        """Both directions of every edge."""
        return Arcs.along(self.edge_index)

    def cached(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """The result of `build`, computed once; the key must name everything it depends on beside this topology."""
        return self._derived.get(key, build)

    def carry(self, attributes: Tensor) -> Tensor:
        """Attributes of the edges from attributes of the input's columns; the first occurrence of an edge counts."""
        where = "Topology.carry"
        rows = check_tensor(attributes, "attributes", where)
        if rows.dim() == 0 or (self.num_edges and rows.shape[0] <= int(self.column.max())):
            raise GraphError(
                f"{where}: edge attributes of shape {list(rows.shape)} do not cover the edge_index they belong to. "
                "Give one row for every column of the edge_index."
            )
        check_same_device(where, edge_index=self.edge_index, attributes=rows)
        return rows.index_select(0, self.column)


def topology(
    edge_index: Tensor, num_nodes: int, graph: Tensor | None = None, num_graphs: int | None = None
) -> Topology:
    """List every undirected edge once, in O(E log E) time and O(E) memory.

    Self-loops and repeats are removed; an edge given in one direction counts the same as one given in both.

    Args:
        edge_index: [2, columns], any directions, repeats and self-loops allowed.
        num_nodes: how many nodes there are; isolated ones need no edge.
        graph: [nodes], which graph of a batch each node belongs to; None for a single graph.
        num_graphs: how many graphs the batch has; None counts them, which misses empty ones at the end.
    """
    where = "topology"
    check_graph_room(where, check_count(num_nodes, "num_nodes", 0, where), edge_index)
    index = check_edge_index(edge_index, num_nodes, where)
    graph, count = check_graph_vector(graph, index, num_nodes, num_graphs, where)

    column = first_columns(index, num_nodes)
    edges = index[:, column]
    crossing = graph[edges[0]] != graph[edges[1]]
    if bool(crossing.any()):
        source, target = edges[:, crossing][:, 0].tolist()
        raise GraphError(
            f"{where}: the edge between nodes {source} and {target} joins graphs {int(graph[source])} and "
            f"{int(graph[target])} of the batch. Give linked nodes the same graph number."
        )
    notes = _notes(index, edges.shape[1])
    for note in notes:
        log.info("topology: %s", note)
    return Topology(num_nodes, edges, column, graph, count, notes)


def first_columns(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Columns in which an undirected edge appears for the first time, in input order, without self-loops."""
    low, high = torch.minimum(*edge_index), torch.maximum(*edge_index)
    proper = (low != high).nonzero().squeeze(1)
    key = low.mul_(num_nodes).add_(high)[proper]
    del low, high  # on large graphs these are half of the memory in use
    ordered, order = key.sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    del key, ordered
    columns: Tensor = proper[order[first]].sort().values
    return columns


def _notes(edge_index: Tensor, num_edges: int) -> tuple[str, ...]:
    """Describe what was removed, other than the second direction of every edge."""
    notes = []
    loops = int((edge_index[0] == edge_index[1]).sum())
    if loops:
        notes.append(f"{loops} self-loops removed")
    columns = edge_index.shape[1] - loops
    if columns not in (num_edges, 2 * num_edges):
        notes.append(f"{columns} arcs merged into {num_edges} undirected edges")
    elif columns == num_edges and num_edges:
        notes.append("edges were given in one direction only; they count in both")
    return tuple(notes)
