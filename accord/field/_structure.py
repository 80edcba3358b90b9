"""The graphs of a field, and what follows from them."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from torch import Tensor

from accord.errors import FieldError
from accord.field._changes import state_of
from accord.graphs._topology import Arcs
from accord.graphs.sequences import SequenceLayout, path_layout
from accord.graphs.structure._peeling import Peeling, peel


class Structure:
    """Edges and graphs that were checked. Fields that differ in their potentials only share one."""

    solver: Callable[..., Any] | None = None  # solves fields on a part of a graph, in place of `propagate`
    prepared: Any = None  # what the last run of `propagate` prepared

    def __init__(self, edge_index: Tensor, graph: Tensor, num_graphs: int, num_nodes: int) -> None:
        self.edge_index, self.graph = edge_index, graph
        self.num_graphs, self.num_nodes = num_graphs, num_nodes
        self._checked = state_of(edge_index), state_of(graph)

    def is_current(self) -> bool:
        """Whether its tensors are still those that were checked."""
        return self._checked == (state_of(self.edge_index), state_of(self.graph))

    @cached_property
    def arcs(self) -> Arcs:
        """Both directions of every edge."""
        return Arcs.along(self.edge_index)

    @cached_property
    def edge_graph(self) -> Tensor:
        """Which graph each edge belongs to [edges]; for a single graph, one 0 expanded."""
        if self.num_graphs == 1:
            return self.graph.new_zeros(1).expand(self.edge_index.shape[1])
        try:
            return self.graph[self.edge_index[0]]
        except IndexError as error:  # a change that `is_current` cannot see, e.g. through numpy
            raise FieldError(
                f"propagate: edge_index names nodes that do not exist ({error}). It was changed after the field was "
                "built: build a new field."
            ) from error

    @cached_property
    def peeling(self) -> Peeling:
        """Which nodes belong to trees attached to the graph, and which form its core."""
        return peel(self.edge_index, self.num_nodes)

    @cached_property
    def paths(self) -> SequenceLayout | None:
        """The sequences that the graphs are; None where one of them is not a path in node order."""
        return path_layout(self.edge_index, self.graph, self.num_graphs)

    @cached_property
    def forest_sweeps(self) -> int:
        """Sweeps after which no message of a forest changes: two passes over its longest path. 0 if there are loops."""
        # A forest has fewer edges than nodes, so most loopy graphs are recognised without peeling.
        if self.edge_index.shape[1] >= self.num_nodes or not self.peeling.is_forest:
            return 0
        return 2 * len(self.peeling.rounds) + 2
