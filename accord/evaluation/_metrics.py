"""Metrics as fractions, one for each replica; nodes whose true label is missing (-1) do not count.

Labels and true labels have shape [*replicas, nodes] and broadcast, unless a docstring says otherwise.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.graphs import Topology, portions_of


def node_accuracy(labels: Tensor, truth: Tensor, topology: Topology | None = None) -> Tensor:
    """Share of nodes labelled right [*replicas]; NaN if no true label is known."""
    known = truth >= 0
    right = (labels == truth) & known
    return right.sum(-1).double() / known.sum(-1)


def graph_accuracy(labels: Tensor, truth: Tensor, topology: Topology) -> Tensor:
    """Share of graphs with every node labelled right [*replicas]; graphs without any true label do not count."""
    known = (truth >= 0).expand_as(labels).double()
    wrong = ((labels != truth) & (truth >= 0)).double()
    shape = (*labels.shape[:-1], topology.num_graphs)
    known_in = known.new_zeros(shape).index_add_(-1, topology.graph, known)
    wrong_in = wrong.new_zeros(shape).index_add_(-1, topology.graph, wrong)
    return ((known_in > 0) & (wrong_in == 0)).sum(-1).double() / (known_in > 0).sum(-1)


def edge_accuracy(tables: Tensor, truth: Tensor, topology: Topology) -> Tensor:
    """Share of edges whose most likely pair of states is right [*replicas].

    Only edges whose two true labels are known count.

    Args:
        tables: [*replicas, edges, states, states], scores or log-probabilities.
        truth: [*replicas, nodes].
        topology: the graphs.
    """
    right, known = _right_pairs(tables, truth, topology)
    return right.sum(-1).double() / known.sum(-1)


def _right_pairs(tables: Tensor, truth: Tensor, topology: Topology) -> tuple[Tensor, Tensor]:
    """Edges whose most likely pair of states is right, and edges whose two true labels are known [*replicas, edges]."""
    source, target = topology.edge_index
    known = (truth[..., source] >= 0) & (truth[..., target] >= 0)
    pair = truth[..., source] * tables.shape[-1] + truth[..., target]
    return (tables.flatten(-2).argmax(-1) == pair) & known, known


def graph_edge_accuracy(tables: Tensor, truth: Tensor, topology: Topology) -> Tensor:
    """Share of graphs, among those with an edge that counts, whose most likely pairs of states are all right.

    Args:
        tables: [*replicas, edges, states, states], scores or log-probabilities.
        truth: [*replicas, nodes].
        topology: the graphs.
    """
    right, known = _right_pairs(tables, truth, topology)
    known = known.expand_as(right)
    wrong = known & ~right
    graph = topology.graph[topology.edge_index[0]].expand(*known.shape[:-1], -1)
    counts = torch.zeros(2, *known.shape[:-1], topology.num_graphs, dtype=torch.long, device=tables.device)
    edges = counts[0].scatter_add(-1, graph, known.long())
    mistakes = counts[1].scatter_add(-1, graph, wrong.long())
    return ((edges > 0) & (mistakes == 0)).sum(-1).double() / (edges > 0).sum(-1)


def micro_f1(labels: Tensor, truth: Tensor) -> Tensor:
    """F1 of state 1 over all nodes [*replicas]; flatten tasks into nodes to pool them as well."""
    known = truth >= 0
    positive, true = (labels == 1) & known, truth == 1
    hit = (positive & true).sum(-1)
    return 2 * hit.double() / (positive.sum(-1) + true.sum(-1))


def node_ids(graphs: Sequence[Data]) -> Tensor | None:
    """The `node_id` of all nodes of the graphs, side by side; None unless every graph has them."""
    if not graphs or not all("node_id" in graph for graph in graphs):
        return None
    return torch.cat([graph.node_id for graph in graphs])


def seen_nodes(train: Sequence[Data]) -> Tensor | None:
    """The different `node_id` of training graphs, ascending; None unless every graph has them."""
    if not train or not all("node_id" in graph for graph in train):
        return None
    seen = torch.empty(0, dtype=torch.long)
    for portion in portions_of(train):
        seen = torch.cat([seen, *(graph.node_id.cpu() for graph in portion)]).unique()
    return seen


def unseen_nodes(train: Sequence[Data], graphs: Sequence[Data]) -> Tensor | None:
    """Which nodes of the graphs, side by side, occur in no training graph; None if any graph lacks `node_id`.

    Ego networks overlap, so a test graph may contain nodes whose labels were seen in training.
    """
    seen, found = seen_nodes(train), node_ids(graphs)
    return None if seen is None or found is None else ~torch.isin(found, seen.to(found.device))
