"""The fields that belief propagation is timed on, drawn from a seed with couplings of moderate strength."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from accord.field import PairwiseField

COUPLING = 0.5  # standard deviation of a table's entries; that of node potentials is 1
GROWTH_STATES = 3
GROWTH_DEGREE = 10  # edges per node


@dataclass(frozen=True)
class Workload:
    """A field that can be drawn again.

    Attributes:
        name: one letter.
        title: its size in words.
        nodes: number of nodes of all graphs together.
        edges: number of edges of all graphs together.
        states: number of states.
        draw: makes the edges [2, edges], each once, on the generator's device.
        graphs: number of graphs, all of the same size.
        cuda_only: too large for most CPUs, and left out there unless requested.
    """

    name: str
    title: str
    nodes: int
    edges: int
    states: int
    draw: Callable[[torch.Generator], Tensor]
    graphs: int = 1
    cuda_only: bool = False

    @property
    def needed_bytes(self) -> int:
        """Estimated memory to draw the field and solve it: tables, a copy of them, indices and messages."""
        return self.edges * (12 * self.states**2 + 32 * self.states + 200)

    @property
    def table_and_message_bytes(self) -> int:
        """Memory of the tables and messages alone, in float32."""
        return self.edges * (4 * self.states**2 + 8 * self.states)

    def make_field(self, device: str) -> PairwiseField:
        """The field on a device, in float32."""
        generator = torch.Generator(device).manual_seed(0)
        edge_index = self.draw(generator)
        node = torch.randn(self.nodes, self.states, generator=generator, device=device)
        shape = (edge_index.shape[1], self.states, self.states)
        edge = torch.randn(shape, generator=generator, device=device).mul_(COUPLING)
        graph = torch.arange(self.nodes, device=device) // (self.nodes // self.graphs)
        return PairwiseField(edge_index, node, edge, graph, self.graphs)


def random_graph(nodes: int, edges: int, generator: torch.Generator) -> Tensor:
    """Distinct undirected edges of a sparse graph, drawn uniformly, in random order."""
    ends = torch.randint(0, nodes, (2, edges + edges // 8 + 64), generator=generator, device=generator.device)
    low, high = ends.amin(0), ends.amax(0)
    key = (low * nodes + high)[low != high].unique()
    assert len(key) >= edges, "too dense: most edges were drawn twice"
    key = key[torch.randperm(len(key), generator=generator, device=generator.device)[:edges]]
    return torch.stack([key // nodes, key % nodes])


def grid_graph(side: int, generator: torch.Generator) -> Tensor:
    """Edges of a square grid."""
    number = torch.arange(side * side, device=generator.device).reshape(side, side)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
    return torch.cat([across, down], 1)


def tiny_graphs(count: int, generator: torch.Generator) -> Tensor:
    """Graphs of 6 nodes and 7 edges: a ring with a chord."""
    ring = torch.tensor([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 3]], device=generator.device)
    return (ring[:, None] + 6 * torch.arange(count, device=generator.device)[:, None]).reshape(2, -1)


def random_workload(name: str, size: str, nodes: int, edges: int, states: int, cuda_only: bool = False) -> Workload:
    """A random graph; `size` describes it in words."""
    draw = partial(random_graph, nodes, edges)
    return Workload(name, f"{size}, K={states}", nodes, edges, states, draw, cuda_only=cuda_only)


def tiny_workload(name: str, count: int, states: int) -> Workload:
    """Many tiny graphs."""
    title = f"{count:,} graphs of 6 nodes, 7 edges, K={states}"
    return Workload(name, title, 6 * count, 7 * count, states, partial(tiny_graphs, count), graphs=count)


def grid_workload(name: str, side: int, states: int) -> Workload:
    """A square grid."""
    title = f"{side}x{side} grid, K={states}"
    return Workload(name, title, side**2, 2 * side * (side - 1), states, partial(grid_graph, side))


def growth_workload(edges: int) -> Workload:
    """A random graph with this many edges, for measurements by size."""
    nodes = edges // GROWTH_DEGREE
    return random_workload(str(edges), f"{nodes:,} nodes, {edges:,} edges", nodes, edges, GROWTH_STATES)


WORKLOADS = {
    workload.name: workload
    for workload in (
        random_workload("a", "20k nodes, 100k edges", 20_000, 100_000, 3),
        random_workload("b", "20k nodes, 1M edges", 20_000, 1_000_000, 2),
        tiny_workload("c", 5_000, 7),
        grid_workload("d", 200, 16),
        random_workload("e", "1M nodes, 5M edges", 1_000_000, 5_000_000, 3),
        random_workload("f", "20k nodes, 100k edges", 20_000, 100_000, 40),
        random_workload("g", "1M nodes, 10M edges", 1_000_000, 10_000_000, 3, cuda_only=True),
        random_workload("h", "1M nodes, 10M edges", 1_000_000, 10_000_000, 16, cuda_only=True),
    )
}


def sweep_bytes(nodes: int, edges: int, states: int) -> int:
    """Bytes that a sweep in float32 must move at least: E (4 K^2 + 16 K + 8) + 12 N K.

    Each table is read once, both messages of an edge are read and written, and its two ends are read as 32-bit
    indices. Node potentials are read, and beliefs are written and read again.
    """
    return edges * (4 * states**2 + 16 * states + 8) + 12 * nodes * states
