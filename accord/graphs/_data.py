"""The topology of a PyG `Data`. Apart from `_topology`, so that fields can be solved without loading PyG."""

import operator

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord.errors import GraphError, InputTypeError
from accord.graphs._checks import check_count, check_integer
from accord.graphs._topology import Topology, topology

NODE_KEYS = ("x", "pos", "batch")  # of a Data: one row for each node


def graph_topology(data: Data) -> Topology:
    """Topology of a PyG `Data`, or of a `Batch` with its graphs kept apart."""
    if not isinstance(data, Data):
        raise InputTypeError(
            f"graph_topology: got a {type(data).__name__}, not a torch_geometric.data.Data. "
            "Build one with Data(x=features, edge_index=edge_index)."
        )
    num_nodes, edge_index = count_nodes(data, "graph_topology"), data.edge_index
    graph, num_graphs = None, None
    if isinstance(data, Batch) and data.batch is not None:
        graph = check_integer(data.batch, "batch", "graph_topology")
        # The last graphs may be empty; only `ptr` counts those.
        ptr = getattr(data, "ptr", None)
        num_graphs = ptr.numel() - 1 if isinstance(ptr, Tensor) else None
    if edge_index is None:
        edge_index = torch.empty(2, 0, dtype=torch.long, device=None if graph is None else graph.device)
    return topology(edge_index, num_nodes, graph, num_graphs)


def count_nodes(data: Data, where: str) -> int:
    """How many nodes a graph has: its num_nodes, or the number of rows of a tensor with one row for each node.

    PyG would also guess from the edges, with a warning: that misses isolated nodes with high numbers.
    """
    given = data["num_nodes"] if "num_nodes" in data else None
    if given is None:
        rows = (data[key] for key in NODE_KEYS if key in data)
        given = next((len(values) for values in rows if isinstance(values, Tensor) and values.dim()), None)
    if given is None:
        raise GraphError(f"{where}: the Data has no node features x and no num_nodes. Set one of them.")
    try:
        return check_count(operator.index(given), "num_nodes", 0, where)
    except (TypeError, RuntimeError):
        raise InputTypeError(
            f"{where}: num_nodes is a {type(given).__name__}, not an int. Give the actual number of nodes."
        ) from None
