"""Graphs and fields that the tests of exact inference share."""

import torch
from support.strategies import DTYPE

from accord import PairwiseField

EXACT = {"rtol": 0, "atol": 1e-9}


def random_field(edge_index, num_nodes, num_states, replicas=(), seed=0):
    generator = torch.Generator().manual_seed(seed)
    node = torch.randn(*replicas, num_nodes, num_states, generator=generator, dtype=DTYPE)
    edge = torch.randn(*replicas, edge_index.shape[1], num_states, num_states, generator=generator, dtype=DTYPE)
    return PairwiseField(edge_index, node, edge)


def chain(length):
    return torch.stack([torch.arange(length - 1), torch.arange(1, length)])


def grid(rows, columns):
    number = torch.arange(rows * columns).reshape(rows, columns)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    return torch.cat([across, torch.stack([number[:-1].flatten(), number[1:].flatten()])], 1)


def complete(num_nodes):
    return torch.combinations(torch.arange(num_nodes)).t()
