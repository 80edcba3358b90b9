"""What every door into the library asks of an edge index and of a graph vector."""

import torch
from torch import Tensor

from accord.errors import GraphError, InputTypeError

INTEGER_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def check_integer(values: object, name: str, where: str) -> Tensor:
    """Return `values` as int64, or say why they cannot be whole numbers."""
    if not isinstance(values, Tensor):
        raise InputTypeError(
            f"{where}: {name} is a {type(values).__name__}, not a torch.Tensor. Wrap it in torch.as_tensor(...)."
        )
    if values.dtype not in INTEGER_DTYPES:
        raise InputTypeError(
            f"{where}: {name} has dtype {values.dtype}, but whole numbers are needed. Convert it with .long()."
        )
    return values.long()


def check_edge_index(edge_index: object, num_nodes: int, where: str) -> Tensor:
    """Return `edge_index` as an int64 tensor [2, edges] whose entries name existing nodes."""
    index = check_integer(edge_index, "edge_index", where)
    if index.dim() != 2 or index.shape[0] != 2:
        raise GraphError(
            f"{where}: edge_index has shape {list(index.shape)}, but [2, edges] is needed: "
            "row 0 the sources, row 1 the targets. A list of pairs wants .t()."
        )
    if index.shape[1]:
        low, high = int(index.min()), int(index.max())
        if low < 0 or high >= num_nodes:
            bad = low if low < 0 else high
            column = int(((index < 0) | (index >= num_nodes)).any(0).nonzero()[0])
            raise GraphError(
                f"{where}: edge_index names node {bad} (first bad column: {column}), but the graph has "
                f"{num_nodes} nodes, numbered 0 to {num_nodes - 1}. Renumber the nodes or pass all their features."
            )
    return index


def check_graph_vector(graph: object, num_nodes: int, num_graphs: int | None, where: str) -> tuple[Tensor, int]:
    """Return which graph each node belongs to, and how many graphs there are."""
    vector = check_integer(graph, "graph", where)
    if vector.shape != (num_nodes,):
        raise GraphError(
            f"{where}: graph has shape {list(vector.shape)}, but one entry for each of {num_nodes} nodes is needed."
        )
    low, high = (int(vector.min()), int(vector.max())) if num_nodes else (0, -1)
    count = max(high + 1, 1) if num_graphs is None else num_graphs
    if low < 0 or high >= count:
        raise GraphError(
            f"{where}: graph numbers run from {low} to {high}, but must lie in 0 to {count - 1}. "
            "Number the graphs of a batch from 0, as PyG's Batch.batch does."
        )
    return vector, count
