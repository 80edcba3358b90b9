"""The tasks of `accord bench defaults` are the data that they claim to be."""

import torch
from torch_geometric.data import Data

from accord.bench.defaults._tasks import _induced


def test_an_induced_subgraph_keeps_each_nodes_own_edges() -> None:
    """Older versions of PyG number the nodes of a subgraph in sorted order, newer ones in the given order."""
    edges = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 4], [1, 0, 2, 1, 3, 2, 4, 3]])
    graph = Data(x=torch.arange(5.0)[:, None], y=torch.arange(5), edge_index=edges)
    part = _induced(graph, torch.tensor([4, 1, 3, 2]))
    joined = {(int(part.y[a]), int(part.y[b])) for a, b in part.edge_index.t()}
    assert joined == {(1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3)}
    assert part.x.flatten().tolist() == part.y.tolist()
