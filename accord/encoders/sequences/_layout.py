"""Where the nodes of a batch of sequences stand: by position, packed without padding, and padded."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.graphs import GraphBatch, Topology


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


def sequence_layout(batch: GraphBatch, where: str) -> SequenceLayout:
    """The sequences of a batch; a graph that is not a path in node order is refused.

    Args:
        batch: the graphs.
        where: what needs sequences, for messages.
    """
    return batch.topology.cached("sequence layout", lambda: path_layout(batch.topology, where))


def path_layout(topology: Topology, where: str) -> SequenceLayout:
    """The same of a topology."""
    sizes = torch.bincount(topology.graph, minlength=topology.num_graphs)
    source, target = topology.edge_index
    beside = (source - target).abs() == 1
    if not bool(beside.all()):
        edge = int((~beside).nonzero()[0])
        number = int(topology.graph[source[edge]])
        start = int(sizes[:number].sum())
        ends = f"{int(source[edge]) - start} and {int(target[edge]) - start}"
        raise GraphError(f"{where}: graph {number} is not a sequence: it has an edge between nodes {ends}. {_REMEDY}")
    # Edges are listed once and join neighbours, so a graph with nodes - 1 of them is a path in node order.
    edges = torch.bincount(topology.graph[source], minlength=topology.num_graphs)
    broken = (edges != (sizes - 1).clamp_min(0)).nonzero().flatten()
    if len(broken):
        number = int(broken[0])
        raise GraphError(
            f"{where}: graph {number} is not a sequence: it has {int(sizes[number])} nodes and {int(edges[number])} "
            f"edges between neighbours. {_REMEDY}"
        )
    return SequenceLayout(sizes[sizes > 0])


_REMEDY = (
    "Number the nodes in order and link each to the next one: data.edge_index = accord.graphs.path_edges(num_nodes)."
)
