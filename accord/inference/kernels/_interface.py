"""What every message passing kernel is given and gives back."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from accord.graphs import Arcs


@dataclass(frozen=True, eq=False)
class Problem:
    """A field with its replica axes in one, and how to run on it."""

    arcs: Arcs
    node: Tensor  # [R, nodes, states]
    edge: Tensor  # [R, edges, states, states]
    appearance: Tensor  # [R or 1, edges]: 1 is plain propagation
    weighted: bool  # whether any appearance may be less than 1
    node_graph: Tensor  # [nodes]: which graph a node belongs to
    edge_graph: Tensor  # [edges]: which graph an edge belongs to; for a single graph, a view of one 0
    num_graphs: int
    semiring: str
    damping: float
    max_sweeps: int
    tolerance: float
    start: Tensor | None  # [R, arcs, states]: messages to go on from
    schedule: str = "synchronous"  # in which order messages are sent

    @cached_property
    def arc_graph(self) -> Tensor:
        """Which graph an arc belongs to [arcs]; for a single graph, a view of one 0."""
        if self.num_graphs == 1:
            return self.edge_graph.new_zeros(1).expand(2 * len(self.edge_graph))
        return self.edge_graph.repeat(2)

    @property
    def wants_gradient(self) -> bool:
        """Whether autograd is to follow what is computed from this problem."""
        given = (self.node, self.edge, self.appearance, self.start)
        return torch.is_grad_enabled() and any(value is not None and value.requires_grad for value in given)

    def detached(self) -> "Problem":
        """The same numbers, cut off from autograd."""
        start = None if self.start is None else self.start.detach()
        return replace(
            self, node=self.node.detach(), edge=self.edge.detach(), appearance=self.appearance.detach(), start=start
        )

    def restricted(self, graphs: Tensor) -> tuple["Problem", Tensor, Tensor]:
        """The same nodes with the edges of some graphs only (a mask [graphs]); which edges and arcs these were."""
        num_edges = self.edge.shape[-3]
        edges = graphs[self.edge_graph].nonzero().flatten()
        arcs = torch.cat([edges, num_edges + edges])
        if len(edges) == num_edges:
            return self, edges, arcs
        part = replace(
            self,
            arcs=Arcs.along(self.arcs.edge_index[:, edges]),
            edge=self.edge[:, edges],
            appearance=self.appearance[:, edges],
            edge_graph=self.edge_graph[edges],
            start=None if self.start is None else self.start[:, arcs],
        )
        return part, edges, arcs


@dataclass(frozen=True, eq=False)
class Solution:
    """Messages, and for each replica and graph how they were reached."""

    messages: Tensor  # [R, arcs, states]: normalised logs
    residual: Tensor  # [R, graphs]: largest change of a log-message in the last sweep
    sweeps: Tensor  # [R, graphs]: sweeps until it was frozen, or all of them
    totals: Tensor | None = None  # [R, nodes, states]: node beliefs up to a constant for each, if a kernel has them


Kernel = Callable[[Problem], Solution]
