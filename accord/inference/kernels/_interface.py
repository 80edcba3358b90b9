"""Input and output of every message passing kernel."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from accord.graphs import Arcs


@dataclass(frozen=True, eq=False)
class Problem:
    """A field with its replica axes merged into one, and the options of a run."""

    arcs: Arcs
    node: Tensor  # [R, nodes, states]
    edge: Tensor  # [R, edges, states, states]
    appearance: Tensor  # [R or 1, edges]: 1 is plain propagation
    weighted: bool  # whether any appearance may be less than 1
    node_graph: Tensor  # [nodes]: which graph a node belongs to
    edge_graph: Tensor  # [edges]: which graph an edge belongs to; for a single graph, one 0 expanded
    num_graphs: int
    semiring: str
    damping: float
    max_sweeps: int
    tolerance: float  # of the largest change of a log-message, relative to max(1, its largest magnitude)
    start: Tensor | None  # [R, arcs, states]: messages to continue from
    schedule: str = "synchronous"  # the order in which messages are sent

    @cached_property
    def arc_graph(self) -> Tensor:
        """Which graph an arc belongs to [arcs]; for a single graph, one 0 expanded."""
        if self.num_graphs == 1:
            return self.edge_graph.new_zeros(1).expand(2 * len(self.edge_graph))
        return self.edge_graph.repeat(2)

    @property
    def wants_gradient(self) -> bool:
        """Whether autograd should record what is computed from this problem."""
        given = (self.node, self.edge, self.appearance, self.start)
        return torch.is_grad_enabled() and any(value is not None and value.requires_grad for value in given)

    @property
    def no_gradient(self) -> str | None:
        """Why a kernel without derivatives cannot take this problem, or None."""
        if self.wants_gradient:
            return "it has no gradient; use backend 'reference' or 'auto', or call it under torch.no_grad()"
        return None

    def detached(self) -> "Problem":
        """The same problem with tensors detached from autograd."""
        start = None if self.start is None else self.start.detach()
        return replace(
            self, node=self.node.detach(), edge=self.edge.detach(), appearance=self.appearance.detach(), start=start
        )

    def restricted(self, graphs: Tensor) -> tuple["Problem", Tensor, Tensor]:
        """The problem with the edges of some graphs only (a mask [graphs]), and the numbers of its edges and arcs."""
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
    """Messages, and how they were reached, for each replica and graph."""

    messages: Tensor  # [R, arcs, states]: normalised logs
    residual: Tensor  # [R, graphs]: largest change of a log-message in the last sweep, relative as in `tolerance`
    sweeps: Tensor  # [R, graphs]: sweeps until the graph was frozen, or all of them
    totals: Tensor | None = (
        None  # [R, nodes, states]: node beliefs up to a constant for each node, if the kernel has them
    )


Kernel = Callable[[Problem], Solution]
