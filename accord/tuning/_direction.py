"""Whether the direction in which edges are stored may carry meaning."""

from collections.abc import Sequence

import torch
from torch_geometric.data import Data

SHARE = 0.01  # of the edges may be stored otherwise than the rest


def may_be_directed(graphs: Sequence[Data]) -> bool:
    """Whether edges are stored in one direction only, or with other attributes in each direction.

    An edge in one direction may be an undirected one that was written once, so validation data must decide.
    """
    edges = single = differing = 0
    for graph in graphs:
        if graph.edge_index is None or graph.edge_index.numel() == 0:
            continue
        source, target = graph.edge_index.cpu()
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        key = (low * int(graph.num_nodes or 0) + high)[low != high]
        if not key.numel():
            continue
        forward = (source < target)[low != high]
        _, place = key.unique(return_inverse=True)
        seen = torch.zeros(2, int(place.max()) + 1, dtype=torch.bool)
        seen[0, place[forward]] = True
        seen[1, place[~forward]] = True
        both = seen.all(0)
        edges += both.numel()
        single += int((~both).sum())
        if graph.edge_attr is not None and bool(both.any()):
            rows = graph.edge_attr.cpu().reshape(source.numel(), -1)[low != high]
            values = rows.new_zeros(2, both.numel(), rows.shape[1])
            values[0, place[forward]] = rows[forward]
            values[1, place[~forward]] = rows[~forward]
            differing += int(((values[0] != values[1]).any(1) & both).sum())
    return edges > 0 and max(single, differing) > SHARE * edges
