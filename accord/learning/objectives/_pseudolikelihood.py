"""Pseudolikelihood: each node's label given its neighbours' true labels (Besag 1975).

No beliefs are needed, since the neighbours are known; but the field is never trained for the case that they are not.
"""

from torch import Tensor

from accord.field import PairwiseField


def conditional_scores(field: PairwiseField, labels: Tensor) -> Tensor:
    """Scores of every state of every node given its neighbours' labels: [*replicas, nodes, states].

    Args:
        field: the potentials.
        labels: [*replicas, nodes]; scores of a node with an unlabelled neighbour are meaningless.
    """
    node, edge = field.node.expand(*field.replicas, -1, -1), field.edge.expand(*field.replicas, -1, -1, -1)
    labels = labels.clamp_min(0).expand(*field.replicas, -1)
    source, target = field.edge_index
    to_target = _rows(edge, labels[..., source])
    to_source = _rows(edge.transpose(-1, -2), labels[..., target])
    return node.index_add(-2, target, to_target).index_add(-2, source, to_source)


def pseudolikelihood(field: PairwiseField, labels: Tensor) -> tuple[Tensor, Tensor]:
    """log p(y_s | labels of the neighbours) at every node, and which nodes count.

    A node counts if it and all its neighbours are labelled.

    Args:
        field: the potentials.
        labels: [*replicas, nodes], -1 where missing.

    Returns:
        Both [*replicas, nodes]; the logs are 0 where the node does not count.
    """
    labels = labels.expand(*field.replicas, -1)
    counts = counted_nodes(field.edge_index, labels).to(field.node.dtype)
    logs = conditional_scores(field, labels).log_softmax(-1)
    logs = logs.gather(-1, labels.clamp_min(0)[..., None])[..., 0]
    return logs.masked_fill(counts == 0, 0.0), counts


def counted_nodes(edge_index: Tensor, labels: Tensor) -> Tensor:
    """Nodes that are labelled and whose neighbours all are: [*replicas, nodes]."""
    missing = (labels < 0).int()
    source, target = edge_index
    around = missing.index_add(-1, target, missing[..., source]).index_add(-1, source, missing[..., target])
    return around == 0


def _rows(tables: Tensor, states: Tensor) -> Tensor:
    """The row of each table that belongs to a state: [..., edges, states]."""
    index = states[..., None, None].expand(*states.shape, 1, tables.shape[-1])
    return tables.gather(-2, index)[..., 0, :]
