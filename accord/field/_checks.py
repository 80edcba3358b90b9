"""What a field asks of its potentials and of labels scored against it."""

import torch
from torch import Tensor

from accord.errors import FieldError, GraphError, InputTypeError
from accord.graphs import check_integer, first_columns

POTENTIAL_DTYPES = (torch.float32, torch.float64)


def check_potentials(values: object, name: str, axes: str, where: str) -> Tensor:
    """Return potentials that are float32 or float64 and hold neither NaN nor +inf."""
    if not isinstance(values, Tensor):
        raise InputTypeError(
            f"{where}: {name} potentials are a {type(values).__name__}, not a torch.Tensor. "
            "Wrap them in torch.as_tensor(...)."
        )
    if values.dtype not in POTENTIAL_DTYPES:
        raise InputTypeError(
            f"{where}: {name} potentials have dtype {values.dtype}; float32 or float64 is needed. "
            "Convert them with .float() or .double()."
        )
    if values.dim() < len(axes.split(", ")):
        raise FieldError(f"{where}: {name} potentials have shape {list(values.shape)}, but [..., {axes}] is needed.")
    # One pass finds both: NaN fails every comparison, +inf fails this one.
    bad = ~(values < torch.inf)
    if bool(bad.any()):
        first = bad.nonzero()[0].tolist()
        kind = "NaN" if bool(values[tuple(first)].isnan()) else "+inf"
        raise FieldError(
            f"{where}: {name} potentials hold {kind} ({int(bad.sum())} bad entries, the first at {first}). "
            "Log-potentials are finite, or -inf for what is forbidden; look for 0/0, log of a negative number or "
            "an overflow where they were computed."
        )
    return values


def check_edges_once(edge_index: Tensor, graph: Tensor, where: str) -> None:
    """Refuse self-loops, repeated edges and edges between graphs of a batch."""
    loops = edge_index[0] == edge_index[1]
    if bool(loops.any()):
        column = int(loops.nonzero()[0])
        raise GraphError(
            f"{where}: edge {column} joins node {int(edge_index[0, column])} to itself. "
            "A field has no self-loops; add such scores to the node's potential, or clean with accord.graphs.topology."
        )
    if first_columns(edge_index, graph.shape[0]).shape[0] != edge_index.shape[1]:
        raise GraphError(
            f"{where}: some undirected edge appears more than once in edge_index ((s, t) and (t, s) are the same "
            "edge). Keep each edge once, as accord.graphs.topology does, and add the tables of repeats."
        )
    crossing = graph[edge_index[0]] != graph[edge_index[1]]
    if bool(crossing.any()):
        raise GraphError(
            f"{where}: edge {int(crossing.nonzero()[0])} joins two graphs of the batch. "
            "Give linked nodes the same graph number."
        )


def check_labels(labels: object, num_nodes: int, num_states: int, lowest: int, where: str) -> Tensor:
    """Return labels [..., nodes] as int64 between `lowest` and `num_states - 1`."""
    values = check_integer(labels, "labels", where)
    if values.dim() < 1 or values.shape[-1] != num_nodes:
        raise FieldError(
            f"{where}: labels have shape {list(values.shape)}, but [..., {num_nodes}] is needed, one for each node."
        )
    if values.numel():
        low, high = int(values.min()), int(values.max())
        if low < lowest or high >= num_states:
            free = "-1 (free) and " if lowest < 0 else ""
            raise FieldError(
                f"{where}: labels run from {low} to {high}; allowed are {free}0 to {num_states - 1}. "
                "Number the states from 0."
            )
    return values


def check_same_device(where: str, **tensors: Tensor) -> None:
    """Refuse tensors that live on different devices."""
    devices = {name: str(tensor.device) for name, tensor in tensors.items()}
    if len(set(devices.values())) > 1:
        listed = ", ".join(f"{name} on {device}" for name, device in devices.items())
        raise FieldError(f"{where}: tensors are on different devices ({listed}). Move them with .to(device).")


def broadcast_replicas(where: str, **axes: torch.Size) -> torch.Size:
    """Common shape of several leading replica axes."""
    try:
        common = torch.Size(torch.broadcast_shapes(*axes.values()))
    except RuntimeError:
        listed = ", ".join(f"{name} {list(shape)}" for name, shape in axes.items())
        raise FieldError(
            f"{where}: the leading replica axes do not fit together ({listed}). "
            "Give both the same replicas, or none to the one that is shared."
        ) from None
    if not common.numel():
        raise FieldError(f"{where}: a replica axis has length 0 ({list(common)}). Give at least one replica.")
    return common
