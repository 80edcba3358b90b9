"""Cora*, Citeseer*, Pubmed*: the ego networks of Planetoid's training, validation and test nodes.

The paper's words: "For each training/validation/test node of the raw dataset, we treat its ego network as a
training/validation/test graph." Ego networks overlap: a node of a test graph may have been seen in training.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.datasets._sparse import SPARSE_ARRAYS, SPARSE_VALUES, dense_rows
from accord.datasets.benchmarks._benchmark import Splits
from accord.datasets.benchmarks._fetch import fetch
from accord.datasets.benchmarks._files import find_file, read_arrays
from accord.graphs import ego_networks

PLANETOID = "planetoid"  # folder in the cache that PyG's class downloads into


@dataclass(frozen=True)
class CitationNetwork:
    """One whole citation graph and the nodes of each split."""

    graph: Data
    train: Tensor
    val: Tensor
    test: Tensor
    source: str


def load_citation(dataset: str) -> Splits:
    """Read a citation network and cut out the ego networks of its splits.

    Args:
        dataset: Planetoid's name: "Cora", "CiteSeer" or "PubMed".
    """
    network = read_citation(dataset)
    train, val, test = (ego_networks(network.graph, nodes) for nodes in (network.train, network.val, network.test))
    return Splits(train, val, test, network.source)


def read_citation(dataset: str) -> CitationNetwork:
    """The whole network: from a file if there is one, else from PyG's `Planetoid`."""
    name = planetoid_file(dataset)
    path = find_file(name)
    if path is not None:
        return _from_file(path)
    return _from_planetoid(fetch(name, PLANETOID, lambda root: _planetoid(root, dataset)), dataset)


def planetoid_file(dataset: str) -> str:
    """Name of the file that holds a network."""
    return f"planetoid_{dataset.lower()}.npz"


def _from_file(path: Path) -> CitationNetwork:
    """Read the .npz form: CSR features, labels, arcs, and the nodes of each split."""
    splits = ("train_idx", "val_idx", "test_idx")
    arrays = read_arrays(path, (*SPARSE_ARRAYS, "y", "edge_index", *splits), optional=(SPARSE_VALUES,))
    x = torch.from_numpy(dense_rows(arrays, path.name)).float()
    tensors = {key: torch.from_numpy(arrays[key]) for key in ("y", "edge_index", *splits)}
    graph = Data(x=x, y=tensors["y"].long(), edge_index=tensors["edge_index"].long())
    train, val, test = (tensors[key].long() for key in splits)
    return CitationNetwork(graph, train, val, test, source=path.name)


def _planetoid(root: str, dataset: str) -> Data:
    """PyG's copy of the network, with the public split."""
    from torch_geometric.datasets import Planetoid

    return Planetoid(root, dataset, split="public")[0]


def _from_planetoid(graph: Data, dataset: str) -> CitationNetwork:
    """Turn Planetoid's masks into nodes."""
    train, val, test = (mask.nonzero().flatten() for mask in (graph.train_mask, graph.val_mask, graph.test_mask))
    whole = Data(x=graph.x, y=graph.y.long(), edge_index=graph.edge_index)
    return CitationNetwork(whole, train, val, test, source=f"torch_geometric.datasets.Planetoid({dataset!r})")
