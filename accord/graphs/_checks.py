"""Checks of input that many public functions share: tensors, counts, edge indices, graph vectors and features."""

import math

import torch
from torch import Tensor

from accord._memory import available_memory
from accord.errors import GraphError, InputError, InputTypeError, TooLargeError

INTEGER_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
MAX_NODES = math.isqrt(2**63 - 1)  # 3e9: beyond this a pair of nodes cannot be numbered in int64
LARGE_BYTES = 2**28  # what takes less is not compared with the available memory
BYTES_PER_NODE, BYTES_PER_EDGE = 8, 40  # graph numbers; sorting edges, to find repeats


def check_tensor(values: object, name: str, where: str) -> Tensor:
    """Return `values` if they are a dense tensor on a real device."""
    if not isinstance(values, Tensor):
        raise InputTypeError(
            f"{where}: {name} is a {type(values).__name__}, not a torch.Tensor. Wrap it in torch.as_tensor(...)."
        )
    if values.is_meta:
        raise InputTypeError(
            f"{where}: {name} is on the meta device, which keeps shapes but no numbers. Give a tensor on a real device."
        )
    if values.layout != torch.strided or values.is_nested:
        kind = "nested" if values.is_nested else str(values.layout).removeprefix("torch.")
        raise InputTypeError(f"{where}: {name} is a {kind} tensor, but a dense one is needed. Use .to_dense().")
    return values


def check_integer(values: object, name: str, where: str) -> Tensor:
    """Return `values` as int64 if they are an integer tensor."""
    tensor = check_tensor(values, name, where)
    if tensor.dtype not in INTEGER_DTYPES:
        mask = ", or a mask's places with .nonzero().flatten()" if tensor.dtype == torch.bool else ""
        raise InputTypeError(
            f"{where}: {name} has dtype {tensor.dtype}, but whole numbers are needed. Convert it with .long(){mask}."
        )
    return tensor.long()


def check_number(value: object, name: str, where: str) -> float:
    """Return a Python number as a float; infinite if it is too large for one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputTypeError(f"{where}: {name} is a {type(value).__name__}, not a number. Give a float.")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_numbers(value: object, name: str, where: str, like: Tensor) -> Tensor:
    """Return a number, or a tensor of them, in the precision and on the device of `like`."""
    if not isinstance(value, Tensor):
        return torch.tensor(check_number(value, name, where), dtype=like.dtype, device=like.device)
    tensor = check_tensor(value, name, where)
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise InputTypeError(
            f"{where}: {name} has dtype {tensor.dtype}, but real numbers are needed. Convert it with .float()."
        )
    return tensor.to(like)


def check_count(value: object, name: str, lowest: int, where: str) -> int:
    """Return a number of nodes or graphs if it lies in the possible range; `name` is num_nodes or num_graphs."""
    remedy = f"Give the actual number of {name.removeprefix('num_')}."
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputTypeError(f"{where}: {name} is a {type(value).__name__}, not an int. {remedy}")
    if not lowest <= value <= MAX_NODES:
        # As a float, because Python refuses to print an int of thousands of digits.
        size = f"{check_number(value, name, where):.10g}"
        raise GraphError(f"{where}: {name} is {size}, but must lie in {lowest} to {MAX_NODES}. {remedy}")
    return value


def check_same_device(where: str, **tensors: Tensor) -> None:
    """Refuse tensors that live on different devices."""
    if len({tensor.device for tensor in tensors.values()}) > 1:
        listed = ", ".join(f"{name} on {tensor.device}" for name, tensor in tensors.items())
        raise InputError(f"{where}: tensors are on different devices ({listed}). Move them with .to(device).")


def check_room(where: str, what: str, needed: int, device: torch.device) -> None:
    """Refuse what takes more memory than there is. Expanded tensors claim any size, but hold only a few numbers."""
    if needed < LARGE_BYTES:
        return
    available = available_memory(device)
    if available is not None and needed > available:
        raise TooLargeError(
            f"{where}: {what} take at least {needed / 1e9:.4g} GB, but {available / 1e9:.2f} GB is available on "
            f"{device}. Give tensors of the actual size, split the work, or free memory."
        )


def check_graph_room(where: str, num_nodes: int, edge_index: object) -> None:
    """Refuse graphs that do not fit into memory, before anything is computed from them."""
    if isinstance(edge_index, Tensor):
        columns = edge_index.shape[-1] if edge_index.dim() else 1
        needed = BYTES_PER_NODE * num_nodes + BYTES_PER_EDGE * columns
        check_room(where, f"{num_nodes} nodes and {columns} columns of edge_index", needed, edge_index.device)


def check_edge_index(edge_index: object, num_nodes: int, where: str) -> Tensor:
    """Return `edge_index` as an int64 tensor [2, edges] whose entries name existing nodes."""
    index = check_integer(edge_index, "edge_index", where)
    if index.dim() != 2 or index.shape[0] != 2:
        raise GraphError(
            f"{where}: edge_index has shape {list(index.shape)}, but [2, edges] is needed: "
            "row 0 the sources, row 1 the targets. Transpose a list of pairs with .t()."
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


def check_graph_vector(
    graph: object, edge_index: Tensor, num_nodes: int, num_graphs: int | None, where: str
) -> tuple[Tensor, int]:
    """Return which graph each node belongs to (None: all to one), and how many graphs there are."""
    if graph is None:
        one = torch.zeros(num_nodes, dtype=torch.long, device=edge_index.device)
        return one, 1 if num_graphs is None else check_count(num_graphs, "num_graphs", 1, where)
    vector = check_integer(graph, "graph", where)
    check_same_device(where, edge_index=edge_index, graph=vector)
    if vector.shape != (num_nodes,):
        raise GraphError(
            f"{where}: graph has shape {list(vector.shape)}, but one entry for each of {num_nodes} nodes is needed. "
            "Give a vector like PyG's Batch.batch."
        )
    low, high = (int(vector.min()), int(vector.max())) if num_nodes else (0, -1)
    count = check_count(max(high + 1, 1) if num_graphs is None else num_graphs, "num_graphs", 1, where)
    if low < 0 or high >= count:
        raise GraphError(
            f"{where}: graph numbers run from {low} to {high}, but must lie in 0 to {count - 1}. "
            "Number the graphs of a batch from 0, as PyG's Batch.batch does."
        )
    return vector, count


def check_features(x: object, num_nodes: int, where: str) -> Tensor:
    """Return node features `x` if they are finite floats [nodes, features]."""
    features = check_tensor(x, "x", where)
    if not features.is_floating_point():
        raise InputTypeError(
            f"{where}: x has dtype {features.dtype}, but features are floats. Convert them with .float()."
        )
    if features.dim() != 2 or features.shape[0] != num_nodes:
        raise GraphError(
            f"{where}: x has shape {list(features.shape)}, but [{num_nodes}, features] is needed, one row for each "
            "node. Pass a single feature as x[:, None]."
        )
    bad = ~features.detach().isfinite()
    if bool(bad.any()):
        row, column = bad.nonzero()[0].tolist()
        number = float(features.detach()[row, column])
        raise GraphError(
            f"{where}: x holds {number} ({int(bad.sum())} bad entries, the first at node {row}, feature {column}). "
            "Fill in missing values, e.g. with x.nan_to_num(), or leave those nodes out."
        )
    return features
