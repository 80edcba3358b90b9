"""Graphs to divide: random and power-law, with isolated nodes, both directions, repeats and self-loops."""

import torch
from torch_geometric.data import Data


def whole_graph(kind, nodes=60, features=6, seed=0, attributes=0, dtype=torch.float32):
    """A graph whose ids are scattered numbers, negative ones included; the last five nodes have no edge."""
    generator = torch.Generator().manual_seed(seed)
    linked, count = nodes - 5, 3 * nodes
    if kind == "random":
        ends = torch.randint(0, linked, (2, count), generator=generator)
    else:  # targets with a power law
        target = (linked * torch.rand(count, generator=generator) ** 4).long()
        ends = torch.stack([torch.randint(0, linked, (count,), generator=generator), target])
    both = ends[:, : count // 2].flip(0)
    loops = torch.arange(0, linked, 11).expand(2, -1)
    edge_index = torch.cat([ends, both, loops, ends[:, :7]], 1)
    x = torch.randn(nodes, features, generator=generator, dtype=dtype)
    ids = torch.randperm(10**6, generator=generator)[:nodes] * 7919 - 3 * 10**9
    y = torch.randint(-1, 3, (nodes,), generator=generator)
    data = Data(x=x, edge_index=edge_index, node_id=ids, y=y)
    if attributes:
        data.edge_attr = torch.randn(edge_index.shape[1], attributes, generator=generator, dtype=dtype)
    return data
