"""The triangles of a graph."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from accord.errors import GraphError
from accord.graphs._checks import check_count, check_edge_index, check_graph_room
from accord.graphs._derived import Derived, Value
from accord.graphs._topology import Topology

SIDES = ((0, 1), (0, 2), (1, 2))  # corners at the ends of each side of a triangle
WEDGES = 2**22  # pairs of neighbours that are looked up at a time


def triangles(edge_index: Tensor, num_nodes: int) -> Tensor:
    """All sets of three nodes that are linked to each other: [triangles, 3], ascending, each once.

    Edges may be given in one or both directions; repeats and self-loops do not count. Every edge points from the end
    with fewer edges to the other, and each node's outgoing edges are paired; so the time is O(edges^1.5).

    Args:
        edge_index: [2, edges].
        num_nodes: how many nodes the graph has.
    """
    where = "triangles"
    check_count(num_nodes, "num_nodes", 0, where)
    check_graph_room(where, num_nodes, edge_index)
    index = check_edge_index(edge_index, num_nodes, where)
    low, high = index.min(0).values, index.max(0).values
    keys = (low * num_nodes + high)[low != high].unique()  # one for each edge, ascending
    low, high = keys // max(num_nodes, 1), keys % max(num_nodes, 1)
    degree = torch.bincount(torch.cat([low, high]), minlength=num_nodes)
    later = (degree[low] < degree[high]) | ((degree[low] == degree[high]) & (low < high))
    source, target = torch.where(later, low, high), torch.where(later, high, low)
    order = source.argsort(stable=True)
    source, target = source[order], target[order]
    ends = torch.bincount(source, minlength=num_nodes).cumsum(0)
    # The edges that come after each among those of its source: with it they make a wedge.
    following = ends[source] - torch.arange(len(source), device=source.device) - 1
    found = [index.new_zeros(0, 3)]
    done = torch.cat([following.new_zeros(1), following.cumsum(0)])
    first = 0
    while first < len(source):
        last = int(torch.searchsorted(done, done[first] + WEDGES, right=True)) - 1
        last = min(max(last, first + 1), len(source))
        edge = torch.arange(first, last, device=source.device).repeat_interleave(following[first:last])
        within = torch.arange(len(edge), device=edge.device) - (done[edge] - done[first])
        one, two = target[edge], target[edge + 1 + within]
        closing = torch.minimum(one, two) * num_nodes + torch.maximum(one, two)
        place = torch.searchsorted(keys, closing).clamp(max=len(keys) - 1)
        closed = keys[place] == closing
        found.append(torch.stack([source[edge], one, two], dim=1)[closed])
        first = last
    listed = torch.cat(found).sort(1).values
    distinct: Tensor = listed.unique(dim=0)
    return distinct


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangles with their corners and sides; side i joins the corners SIDES[i]."""

    corner: Tensor  # [triangles, 3]: nodes
    side: Tensor  # [triangles, 3]: columns of the edge index
    turned: Tensor  # [triangles, 3]: the edge is stored from the second corner of the side to the first
    _derived: Derived = field(default_factory=Derived, init=False, repr=False)

    def cached(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """The result of `build`, computed once; the key must name everything it depends on beside the graphs."""
        return self._derived.get(key, build)

    def __len__(self) -> int:
        """How many triangles."""
        return len(self.corner)


def find_sides(corner: Tensor, edge_index: Tensor, num_nodes: int) -> Triangles:
    """The sides of triangles among the edges of a graph.

    Args:
        corner: [triangles, 3].
        edge_index: [2, edges], each undirected edge once.
        num_nodes: how many nodes the graph has.

    Raises:
        GraphError: a side is not an edge.
    """
    ends = corner[:, list(SIDES)]  # [triangles, 3, 2]
    ordered, order = (edge_index.amin(0) * num_nodes + edge_index.amax(0)).sort()
    wanted = ends.amin(-1) * num_nodes + ends.amax(-1)
    if not len(ordered):
        ordered, order = wanted.new_full((1,), -1), wanted.new_zeros(1)
    place = torch.searchsorted(ordered, wanted).clamp(max=len(ordered) - 1)
    missing = ordered[place] != wanted
    if bool(missing.any()):
        row, side = missing.nonzero()[0].tolist()
        raise GraphError(
            f"triangle {row} has the corners {corner[row].tolist()}, but {ends[row, side].tolist()} is not an edge. "
            "Give triangles of the graph, such as accord.graphs.triangles finds."
        )
    side = order[place]
    return Triangles(corner, side, edge_index[0][side] != ends[..., 0] if len(corner) else side.bool())


def topology_triangles(topology: Topology) -> Triangles:
    """All triangles of the graphs of a batch, found once."""

    def build() -> Triangles:
        found = triangles(topology.edge_index, topology.num_nodes)
        return find_sides(found, topology.edge_index, topology.num_nodes)

    return topology.cached("triangles", build)
