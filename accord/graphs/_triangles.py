"""The triangles of a graph."""

import torch
from torch import Tensor

from accord.graphs._checks import check_count, check_edge_index, check_graph_room

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
