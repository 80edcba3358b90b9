"""Where the nodes of a batch of sequences stand: by position, packed without padding, and padded."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.graphs._topology import Topology


@dataclass(frozen=True, eq=False)
class SequenceLayout:
    """The sequences of a batch; nodes are numbered one sequence after the other. Empty graphs have no sequence."""

    lengths: Tensor  # [sequences]

    @property
    def num_nodes(self) -> int:
        """Nodes of all sequences."""
        return len(self.position)

    @cached_property
    def first(self) -> Tensor:
        """The first node of each sequence [sequences]."""
        return self.lengths.cumsum(0) - self.lengths

    @cached_property
    def last(self) -> Tensor:
        """The last node of each sequence [sequences]."""
        return self.lengths.cumsum(0) - 1

    @cached_property
    def sequence(self) -> Tensor:
        """Which sequence each node belongs to [nodes]."""
        return torch.repeat_interleave(torch.arange(len(self.lengths), device=self.lengths.device), self.lengths)

    @cached_property
    def position(self) -> Tensor:
        """Position of each node in its sequence [nodes]."""
        nodes = torch.arange(len(self.sequence), device=self.lengths.device)
        return nodes - self.first[self.sequence]

    @cached_property
    def packed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Nodes in the order of torch's `PackedSequence`, the inverse of that order, and its batch sizes (on the CPU).

        All first positions come first, then all second ones; longer sequences before shorter ones.
        """
        by_length = torch.argsort(self.lengths, descending=True, stable=True)
        rank = torch.empty_like(by_length).scatter_(0, by_length, torch.arange(len(by_length), device=by_length.device))
        order = torch.argsort(self.position * len(self.lengths) + rank[self.sequence])
        return order, torch.argsort(order), torch.bincount(self.position).cpu()

    @cached_property
    def padded(self) -> Tensor:
        """The place of each node [nodes] among sequences x length of the longest."""
        return self.sequence * self.longest + self.position

    @cached_property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return int(self.lengths.max()) if len(self.lengths) else 0

    def shifted(self, h: Tensor, offset: int) -> Tensor:
        """Rows [nodes, ...] of the node `offset` positions further on; zeros beyond the ends of a sequence."""
        if offset == 0:
            return h
        place = self.position + offset
        outside = (place < 0) | (place >= self.lengths[self.sequence])
        rows = (torch.arange(len(place), device=place.device) + offset).masked_fill(outside, 0)
        return h.index_select(0, rows).masked_fill(outside.reshape(-1, *(1,) * (h.dim() - 1)), 0.0)


def path_layout(edge_index: Tensor, graph: Tensor, num_graphs: int) -> SequenceLayout | None:
    """The sequences of graphs that are all paths in node order; None where one is not.

    Args:
        edge_index: [2, edges], each undirected edge once.
        graph: [nodes], which graph each node belongs to, in rising order.
        num_graphs: how many graphs there are.
    """
    if bool((graph[1:] < graph[:-1]).any()) or not bool(((edge_index[0] - edge_index[1]).abs() == 1).all()):
        return None
    sizes = torch.bincount(graph, minlength=num_graphs)
    # Edges are listed once and join neighbours, so a graph with nodes - 1 of them is a path.
    edges = torch.bincount(graph[edge_index[0]], minlength=num_graphs)
    return SequenceLayout(sizes[sizes > 0]) if bool((edges == (sizes - 1).clamp_min(0)).all()) else None


def sequence_layout(topology: Topology, where: str) -> SequenceLayout:
    """The sequences of a batch of graphs; a graph that is not a path in node order is refused.

    Args:
        topology: the graphs.
        where: what needs sequences, for messages.
    """
    found = topology.cached(
        "sequence layout", lambda: path_layout(topology.edge_index, topology.graph, topology.num_graphs)
    )
    if found is None:
        raise GraphError(f"{where}: {_difference(topology)} {_REMEDY}")
    return found


_REMEDY = (
    "Number the nodes in order and link each to the next one: data.edge_index = accord.graphs.path_edges(num_nodes)."
)


def _difference(topology: Topology) -> str:
    """Which graph is no path, and why."""
    sizes = torch.bincount(topology.graph, minlength=topology.num_graphs)
    source, target = topology.edge_index
    far = ((source - target).abs() != 1).nonzero().flatten()
    if len(far):
        number = int(topology.graph[source[far[0]]])
        start = int(sizes[:number].sum())
        ends = " and ".join(str(int(end[far[0]]) - start) for end in (source, target))
        return f"graph {number} is not a sequence: it has an edge between nodes {ends}."
    edges = torch.bincount(topology.graph[source], minlength=topology.num_graphs)
    number = int((edges != (sizes - 1).clamp_min(0)).nonzero()[0])
    return (
        f"graph {number} is not a sequence: it has {int(sizes[number])} nodes, but {int(edges[number])} edges between "
        "neighbours."
    )
