"""Small labelled graphs whose labels tend to agree along edges; features are noisy labels."""

import torch
from torch_geometric.data import Data


def made_trees(count, seed, states=2, noise=1.0):
    """Random trees; a child repeats its parent's label four times out of five."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        size = int(torch.randint(2, 7, (), generator=generator))
        parents = [int(torch.randint(0, child, (), generator=generator)) for child in range(1, size)]
        y = torch.randint(0, states, (size,), generator=generator)
        for child, parent in enumerate(parents, start=1):
            if torch.rand((), generator=generator) < 0.8:
                y[child] = y[parent]
        edges = torch.tensor([parents, list(range(1, size))])
        x = torch.nn.functional.one_hot(y, states) + noise * torch.randn(size, states, generator=generator)
        graphs.append(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), y=y))
    return graphs
