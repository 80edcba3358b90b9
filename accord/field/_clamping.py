"""Known labels: every other state of a node becomes forbidden."""

import torch
from torch import Tensor

from accord.errors import InfeasibleError
from accord.field._checks import broadcast_replicas, check_labels
from accord.graphs._checks import check_same_device


def clamp_node(node: Tensor, replicas: torch.Size, labels: Tensor, where: str) -> Tensor:
    """Node potentials with -inf at the states that known labels rule out.

    Args:
        node: [*replicas, nodes, states].
        replicas: replica axes of the whole field.
        labels: [*replicas, nodes]; -1 leaves a node free.
        where: the function that was called.
    """
    nodes, num_states = node.shape[-2:]
    labels = check_labels(labels, nodes, num_states, -1, where)
    check_same_device(where, node=node, labels=labels)
    lead = broadcast_replicas(where, labels=labels.shape[:-1], field=replicas)
    states = torch.arange(num_states, device=labels.device)
    other = (labels[..., None] >= 0) & (labels[..., None] != states)
    clamped = node.expand(*lead, nodes, num_states).masked_fill(other, -torch.inf)
    empty = (clamped == -torch.inf).all(-1)
    if bool(empty.any()):
        raise InfeasibleError(
            f"{where}: node {int(empty.nonzero()[0, -1])} is clamped to a state that the field forbids or that "
            "it does not have. Clamp it to another state or leave it free (-1)."
        )
    return clamped
