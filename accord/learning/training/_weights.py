"""Weights of training labels by state, so that rare states count more, or costly mistakes do."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.graphs import GraphBatch, batches_of
from accord.learning.training._replicas import Replicas


@dataclass(frozen=True, eq=False)
class StateWeights:
    """Weights of labels at nodes, and of pairs of labels at edges; over the training labels their mean is 1.

    The weight of a pair is the geometric mean of the weights of its ends. A weight that is a product over the ends
    changes how often the edge network expects each state, but not how much it expects the ends to agree: it leaves
    odds ratios unchanged. The root keeps edges between two rare states from outweighing all others.

    The first axis is the task, or after `of_replicas` the replica.
    """

    node: Tensor  # [tasks, states]
    edge: Tensor  # [tasks, states, states]

    @classmethod
    def balanced(cls, train: Sequence[Data], num_states: int) -> "StateWeights":
        """Every state counts the same in total, task by task; states without a training label do not matter."""
        counts = count_labels(train, num_states)
        weights = torch.where(counts > 0, 1 / counts.clamp_min(1), 1.0)
        return cls.by_state(weights, train)

    @classmethod
    def by_state(cls, weights: Tensor, train: Sequence[Data]) -> "StateWeights":
        """Weights in any unit [states] or [tasks, states], brought to a mean of 1 over the training labels."""
        states = int(weights.shape[-1])
        labels = count_labels(train, states)
        pairs = sum(_pair_counts(batch, states) for batch in batches_of(train))
        assert isinstance(pairs, Tensor)  # there is a batch
        node = weights.double().expand(len(labels), states)
        edge = (node[:, :, None] * node[:, None, :]).sqrt()
        return cls(_scaled(node, labels).float(), _scaled(edge.flatten(1), pairs).view_as(edge).float())

    def of_replicas(self, replicas: Replicas, device: torch.device) -> "StateWeights":
        """The weights of each replica's task, on a device."""
        tasks = [replicas.seed_and_task(place)[1] for place in range(replicas.count)]
        return StateWeights(self.node[tasks].to(device), self.edge[tasks].to(device))


def count_labels(train: Sequence[Data], num_states: int) -> Tensor:
    """How often each state occurs among the labels of each task: [tasks, states]."""
    counts = [_label_counts(_labels(batch), num_states) for batch in batches_of(train) if batch.y is not None]
    if not counts:
        raise GraphError("The training graphs have no labels `y`. Set them.")
    return torch.stack(counts).sum(0)


def _labels(batch: GraphBatch) -> Tensor:
    """[tasks, nodes]."""
    assert batch.y is not None
    y = batch.y.cpu()
    return y[None] if y.dim() == 1 else y.t()


def _pair_counts(batch: GraphBatch, states: int) -> Tensor | int:
    """How often each pair of states occurs at an edge: [tasks, states * states]."""
    if batch.y is None:
        return 0
    source, target = (_labels(batch)[:, ends] for ends in batch.topology.edge_index.cpu())
    return _label_counts((source * states + target).masked_fill((source < 0) | (target < 0), -1), states**2)


def _label_counts(labels: Tensor, count: int) -> Tensor:
    """How often each of `count` values occurs in every row of labels: [rows, count]."""
    return torch.stack([torch.bincount(row[row >= 0], minlength=count) for row in labels])


def _scaled(weights: Tensor, counts: Tensor) -> Tensor:
    """Weights [rows, values] with a mean of 1 over values that occur `counts` times; unchanged where none does."""
    total = counts.sum(-1, keepdim=True)
    mean = (weights * counts).sum(-1, keepdim=True) / total.clamp_min(1)
    return torch.where(total > 0, weights / mean.clamp_min(torch.finfo(mean.dtype).tiny), weights)
