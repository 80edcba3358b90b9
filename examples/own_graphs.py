"""Your own graphs: rings of people who mostly share their neighbours' opinion, with noisy features.

python examples/own_graphs.py
"""

import torch
from torch_geometric.data import Data

import accord


def ring(seed: int, opinions: int = 3) -> Data:
    """One labelled ring."""
    generator = torch.Generator().manual_seed(seed)
    size = int(torch.randint(5, 10, (), generator=generator))
    changes = torch.rand(size, generator=generator) < 0.2
    y = (torch.randint(0, opinions, (), generator=generator) + changes.cumsum(0)) % opinions
    x = torch.nn.functional.one_hot(y, opinions) + 1.2 * torch.randn(size, opinions, generator=generator)
    around = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])
    return Data(x=x, edge_index=around, y=y)  # one direction of each edge is enough


train, test = [ring(seed) for seed in range(80)], [ring(seed) for seed in range(1000, 1200)]
for method in ("gnn", "smooth", "gmnn", "crf", "spn"):
    model = accord.NodeClassifier(method=method, encoder="mlp", level="graph", max_epochs=60)
    model.fit(train)  # holds out a fifth of the graphs for model selection
    print(f"{method}: {model.score(test, level='node'):.1%} of nodes, {model.score(test):.1%} of graphs all right")
