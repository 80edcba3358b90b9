"""PPI: protein interactions in 24 tissues, 121 yes/no labels a protein; PPI-n trains on the first n."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.datasets.benchmarks._benchmark import Splits
from accord.datasets.benchmarks._fetch import fetch
from accord.datasets.benchmarks._files import find_file, read_arrays
from accord.errors import GraphError

PPI = "ppi"  # folder in the cache that PyG's class downloads into
PPI_FILE = "ppi_recon.npz"
SPLITS = ("train", "val", "test")  # numbered 0, 1, 2 in the file


@dataclass(frozen=True)
class ProteinNetworks:
    """The graphs in the order of their source, features untreated."""

    train: list[Data]
    val: list[Data]
    test: list[Data]
    source: str


def load_ppi(num_train_graphs: int) -> Splits:
    """Read the graphs and keep the first training graphs; validation and test stay whole."""
    networks = read_ppi()
    train = networks.train[:num_train_graphs]
    if len(train) < num_train_graphs:
        raise GraphError(
            f"load_benchmark: {networks.source} has {len(train)} training graphs, but "
            f"ppi-{num_train_graphs} needs {num_train_graphs}. Replace it with the whole data set."
        )
    return Splits(train, networks.val, networks.test, networks.source)


def read_ppi() -> ProteinNetworks:
    """All graphs: from a file if there is one, else from PyG's `PPI`."""
    path = find_file(PPI_FILE)
    if path is not None:
        return _from_file(path)
    return _from_pyg(fetch(PPI_FILE, PPI, _ppi))


def _from_file(path: Path) -> ProteinNetworks:
    """Read the .npz form: all graphs side by side. `gene` is left alone: it gives the labels away."""
    arrays = read_arrays(path, ("x", "y", "edge_index", "graph_id", "split"))
    x, y = torch.from_numpy(arrays["x"]).float(), torch.from_numpy(arrays["y"]).long()
    graph_id, split = torch.from_numpy(arrays["graph_id"]).long(), torch.from_numpy(arrays["split"]).long()
    parts = split_union(x, y, torch.from_numpy(arrays["edge_index"]).long(), graph_id)
    split_of = torch.zeros(len(parts), dtype=torch.long).scatter_(0, graph_id, split).tolist()
    train, val, test = ([part for part, s in zip(parts, split_of, strict=True) if s == number] for number in range(3))
    source = f"{path.name} (graphs and features of the benchmark; labels rebuilt, not the benchmark's own)"
    return ProteinNetworks(train, val, test, source)


def split_union(x: Tensor, y: Tensor, edge_index: Tensor, graph_id: Tensor) -> list[Data]:
    """Take graphs that lie side by side apart, by number; nodes and arcs keep their order."""
    arc_graph = graph_id[edge_index[0]]
    if bool((arc_graph != graph_id[edge_index[1]]).any()):
        raise GraphError("split_union: an edge joins two graphs. Give linked nodes the same graph number.")
    num_graphs = int(graph_id.max()) + 1
    nodes = torch.split(graph_id.argsort(stable=True), graph_id.bincount(minlength=num_graphs).tolist())
    arcs = torch.split(arc_graph.argsort(stable=True), arc_graph.bincount(minlength=num_graphs).tolist())
    position = torch.empty_like(graph_id)
    for members in nodes:
        position[members] = torch.arange(members.numel())
    return [
        Data(x=x[members], y=y[members], edge_index=position[edge_index[:, columns]])
        for members, columns in zip(nodes, arcs, strict=True)
    ]


def _ppi(root: str) -> list[Any]:
    """PyG's copy, one dataset per split."""
    from torch_geometric.datasets import PPI as PygPPI

    return [PygPPI(root, split=split) for split in SPLITS]


def _from_pyg(datasets: list[Any]) -> ProteinNetworks:
    """PyG keeps the labels as floats; its features are already standardised by all twenty training graphs."""
    train, val, test = (
        [Data(x=graph.x, y=graph.y.long(), edge_index=graph.edge_index) for graph in dataset] for dataset in datasets
    )
    return ProteinNetworks(train, val, test, source="torch_geometric.datasets.PPI (the benchmark's own labels)")
