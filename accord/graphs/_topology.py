"""From any edge index to undirected edges held once, and the arcs that messages travel on."""

import logging
import operator
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord.errors import GraphError, InputTypeError
from accord.graphs._checks import (
    check_count,
    check_edge_index,
    check_graph_room,
    check_graph_vector,
    check_integer,
    check_same_device,
    check_tensor,
)
from accord.graphs._derived import Derived, Value

log = logging.getLogger("accord.graphs")

NODE_KEYS = ("x", "pos", "batch")  # of a Data: one row for each node


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


def graph_topology(data: Data) -> Topology:
    """Topology of a PyG `Data`, or of a `Batch` with its graphs kept apart."""
    if not isinstance(data, Data):
        raise InputTypeError(
            f"graph_topology: got a {type(data).__name__}, not a torch_geometric.data.Data. "
            "Build one with Data(x=features, edge_index=edge_index)."
        )
    num_nodes, edge_index = count_nodes(data, "graph_topology"), data.edge_index
    graph, num_graphs = None, None
    if isinstance(data, Batch) and data.batch is not None:
        graph = check_integer(data.batch, "batch", "graph_topology")
        # The last graphs may be empty; only `ptr` counts those.
        ptr = getattr(data, "ptr", None)
        num_graphs = ptr.numel() - 1 if isinstance(ptr, Tensor) else None
    if edge_index is None:
        edge_index = torch.empty(2, 0, dtype=torch.long, device=None if graph is None else graph.device)
    return topology(edge_index, num_nodes, graph, num_graphs)


def count_nodes(data: Data, where: str) -> int:
    """How many nodes a graph has: its num_nodes, or the number of rows of a tensor with one row for each node.

    PyG would also guess from the edges, with a warning: that misses isolated nodes with high numbers.
    """
    given = data["num_nodes"] if "num_nodes" in data else None
    if given is None:
        rows = (data[key] for key in NODE_KEYS if key in data)
        given = next((len(values) for values in rows if isinstance(values, Tensor) and values.dim()), None)
    if given is None:
        raise GraphError(f"{where}: the Data has no node features x and no num_nodes. Set one of them.")
    try:
        return check_count(operator.index(given), "num_nodes", 0, where)
    except (TypeError, RuntimeError):
        raise InputTypeError(
            f"{where}: num_nodes is a {type(given).__name__}, not an int. Give the actual number of nodes."
        ) from None
