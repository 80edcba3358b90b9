"""Edge columns: what the attributes of a node's edges say, as further columns of its features.

Networks over nodes read features of nodes alone. Mean and sum of the attributes of a node's edges bring edge attributes
into them, whatever the network is.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.graphs._masks import TRAIN_MASK
from accord.graphs._stream import portions_of
from accord.graphs.features._moments import Moments


@dataclass(frozen=True, eq=False)
class EdgeColumns:
    """Means and sums of edge attributes at each node, standardised by the training nodes.

    Args:
        directed: whether edges that leave a node and edges that enter it have columns of their own.
        mean: [columns], float64, of the training nodes.
        deviation: [columns], float64; 1 for columns that are constant in training.
    """

    directed: bool
    mean: Tensor
    deviation: Tensor

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len(self.mean)

    def apply(self, graph: Data) -> Data:
        """The graph with these columns after those of `x`."""
        attributes = self.count // (4 if self.directed else 2)
        columns = edge_aggregates(graph, attributes, self.directed)
        scaled = (columns - self.mean.to(columns.device)) / self.deviation.to(columns.device)
        extended = copy.copy(graph)
        extended.x = torch.cat([graph.x, scaled.to(graph.x)], 1)
        return extended

    def tensors(self) -> dict[str, Tensor]:
        """What was fitted, by name."""
        return {"mean": self.mean, "deviation": self.deviation}


def fit_edge_columns(train: Sequence[Data], attributes: int, directed: bool) -> EdgeColumns:
    """Edge columns for graphs like these; of a graph with a `train_mask`, the nodes in it are scaled by.

    Args:
        train: the training graphs.
        attributes: of an edge.
        directed: whether the direction in which edges are stored counts.
    """
    moments = Moments()
    for portion in portions_of(train):
        rows = []
        for graph in portion:
            own = edge_aggregates(graph, attributes, directed)
            mask = graph.get(TRAIN_MASK)
            rows.append(own if mask is None else own[mask.to(own.device)])
        moments.add(torch.cat(rows))
    return EdgeColumns(directed, moments.mean.cpu(), moments.scales().cpu())


def edge_aggregates(graph: Data, attributes: int, directed: bool) -> Tensor:
    """Mean and sum of the attributes of each node's edges [nodes, columns], float64; zeros at a node without edges.

    Self-loops and repeats do not count. Without direction an edge counts once, by the mean of its two directions, so
    that graphs that store one direction and graphs that store both are the same.

    Args:
        graph: with `x`, and `edge_attr` where there are edges.
        attributes: of an edge.
        directed: give means of edges that leave, means of edges that enter, and the sums of both likewise.
    """
    nodes = len(graph.x)
    if graph.edge_index is None or not graph.edge_index.numel():
        return torch.zeros(nodes, attributes * (4 if directed else 2), dtype=torch.float64, device=graph.x.device)
    rows = None if graph.edge_attr is None else graph.edge_attr.reshape(graph.edge_index.shape[1], -1)
    if rows is None or rows.shape[1] != attributes:
        found = 0 if rows is None else rows.shape[1]
        raise GraphError(
            f"The model was trained on {attributes} edge attributes, the graph has {found}. Set `edge_attr`."
        )
    (source, target), rows = _distinct(graph.edge_index, rows.double(), nodes)
    if directed:
        ends = [(source, rows), (target, rows)]
    else:
        low, high = torch.minimum(source, target), torch.maximum(source, target)
        key, place = (low * nodes + high).unique(return_inverse=True)
        total = rows.new_zeros(len(key), attributes).index_add_(0, place, rows)
        each = total / torch.bincount(place)[:, None]
        ends = [(torch.cat([key // nodes, key % nodes]), torch.cat([each, each]))]
    sums = [rows.new_zeros(nodes, attributes).index_add_(0, end, own) for end, own in ends]
    counts = [torch.bincount(end, minlength=nodes).clamp_min(1)[:, None] for end, _ in ends]
    return torch.cat([*(total / count for total, count in zip(sums, counts, strict=True)), *sums], 1)


def _distinct(edge_index: Tensor, rows: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Columns of an edge index and their attributes without self-loops, each once: the first counts."""
    proper = (edge_index[0] != edge_index[1]).nonzero().flatten()
    key = (edge_index[0] * nodes + edge_index[1])[proper]
    ordered, order = key.sort(stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    kept = proper[order[first]]
    return edge_index[:, kept], rows[kept]
