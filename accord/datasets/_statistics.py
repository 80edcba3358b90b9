"""Figures of a set of graphs: sizes, degrees, shares of labels, and how much labels agree across edges."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from accord.graphs import GraphBatch


@dataclass(frozen=True)
class GraphStatistics:
    """Figures of graphs taken together."""

    graphs: int
    nodes: int
    edges: int  # undirected, without self-loops and repeats
    largest: int  # nodes of the largest graph
    features: int
    edge_attributes: int
    mean_degree: float
    largest_degree: int
    isolated: int  # nodes without neighbours
    labelled: int  # nodes with a label (of several tasks: with any)
    shares: tuple[tuple[float, ...], ...]  # of each state among known labels, for each task
    agreement: tuple[float | None, ...]  # share of labelled edges whose ends have equal labels, for each task
    chance: tuple[float | None, ...]  # the same if labels were dealt anew to the ends of these edges


def describe_graphs(graphs: Sequence[Data], num_states: int | None = None) -> GraphStatistics:
    """Figures of graphs; `num_states` counts states that do not occur as well."""
    batch = GraphBatch.collate(list(graphs))
    source, target = batch.topology.edge_index
    degree = torch.bincount(batch.topology.edge_index.flatten(), minlength=batch.num_nodes)
    sizes = torch.bincount(batch.topology.graph, minlength=batch.num_graphs)
    shares: list[tuple[float, ...]] = []
    agreement: list[float | None] = []
    chance: list[float | None] = []
    labels = None if batch.y is None else batch.y[:, None] if batch.y.dim() == 1 else batch.y
    for task in range(0 if labels is None else labels.shape[1]):
        assert labels is not None
        own = labels[:, task]
        known = own[own >= 0]
        counts = torch.bincount(known, minlength=num_states or 0)
        shares.append(tuple((counts / max(len(known), 1)).tolist()))
        ends = torch.stack([own[source], own[target]])
        ends = ends[:, (ends >= 0).all(0)]
        if ends.shape[1]:
            agreement.append(float((ends[0] == ends[1]).double().mean()))
            ratio = torch.bincount(ends.flatten()).double() / ends.numel()
            chance.append(float((ratio**2).sum()))
        else:
            agreement.append(None)
            chance.append(None)
    labelled = 0 if labels is None else int((labels >= 0).any(1).sum())
    return GraphStatistics(
        batch.num_graphs,
        batch.num_nodes,
        batch.num_edges,
        int(sizes.max()) if len(sizes) else 0,
        batch.num_features,
        batch.num_edge_attributes,
        float(degree.double().mean()) if batch.num_nodes else 0.0,
        int(degree.max()) if batch.num_nodes else 0,
        int((degree == 0).sum()),
        labelled,
        tuple(shares),
        tuple(agreement),
        tuple(chance),
    )
