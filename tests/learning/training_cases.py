"""Graphs that the tests of training share."""

import torch
from torch_geometric.data import Data

from accord.methods import Shape


def made_graphs(count, seed, states=3, missing=0.0):
    """Rings whose labels tend to agree along edges; features are noisy labels."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        size = int(torch.randint(4, 8, (), generator=generator))
        ring = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])
        first = torch.randint(0, states, (), generator=generator)
        flips = torch.rand(size, generator=generator) < 0.2
        y = (first + flips.long().cumsum(0)) % states
        x = torch.nn.functional.one_hot(y, states) + 1.2 * torch.randn(size, states, generator=generator)
        y = y.masked_fill(torch.rand(size, generator=generator) < missing, -1)
        graphs.append(Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], 1), y=y))
    return graphs


TRAIN, VAL, TEST = made_graphs(40, 0), made_graphs(20, 1), made_graphs(60, 2)
SHAPE = Shape(3, 3)
