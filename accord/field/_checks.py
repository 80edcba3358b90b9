"""Checks of a field's potentials, and of labels that are scored against it."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.errors import FieldError, GraphError, InputTypeError, TooLargeError
from accord.field._changes import dense
from accord.graphs._checks import check_integer, check_same_device, check_tensor

POTENTIAL_DTYPES = (torch.float32, torch.float64)
MOST_TOGETHER = 2**16  # numbers that are copied side by side to check them at once
MAX_GRAPHS = 2**30  # kernels number graphs in 32 bits
# The sum of a million such potentials is still finite. Twice finfo.min, which some use as a mask, would not be.
LARGEST_POTENTIAL = {dtype: torch.finfo(dtype).max / 2**20 for dtype in POTENTIAL_DTYPES}


def check_forms(node: object, edge: object, where: str) -> None:
    """Refuse potentials that are not float tensors, or whose shapes do not fit together."""
    node = check_node_form(node, where)
    edge = check_form(edge, "edge", "edges, states, states", where)
    if edge.shape[-2:] != (node.shape[-1],) * 2:
        raise FieldError(
            f"{where}: edge potentials have {list(edge.shape[-2:])} states but node potentials have "
            f"{node.shape[-1]}. Build both with the same number of states."
        )
    if node.dtype != edge.dtype:
        raise InputTypeError(
            f"{where}: node potentials are {node.dtype}, edge potentials {edge.dtype}. Convert one of them."
        )
    check_same_device(where, node=node, edge=edge)
    broadcast_replicas(where, node=node.shape[:-2], edge=edge.shape[:-3])


def check_form(values: object, name: str, axes: str, where: str) -> Tensor:
    """Return potentials if they are a float tensor with the axes that are named, or more."""
    tensor = check_tensor(values, name, where)
    if tensor.dtype not in POTENTIAL_DTYPES:
        raise InputTypeError(
            f"{where}: {name} potentials have dtype {tensor.dtype}; float32 or float64 is needed. "
            "Convert them with .float() or .double()."
        )
    if tensor.dim() < len(axes.split(", ")):
        raise FieldError(
            f"{where}: {name} potentials have shape {list(tensor.shape)}, but [..., {axes}] is needed. "
            "Give one row of states for each node, and one table for each edge."
        )
    return tensor


def check_potentials(where: str, **potentials: Tensor) -> None:
    """Refuse potentials that hold NaN, +inf, or numbers so large that sums of them overflow."""
    for name, given in potentials.items():
        check_values(name, given, where)


def check_values(name: str, given: Tensor, where: str) -> None:
    """Refuse potentials that hold NaN, +inf, or numbers so large that sums of them overflow."""
    if not given.numel():
        return
    values = dense(given)
    limit = LARGEST_POTENTIAL[values.dtype]
    if _fit(values, limit):
        return
    bad = _misfits(values, limit)
    if bool(bad.any()):
        first = bad.nonzero()[0].tolist()
        number = float(values[tuple(first)])
        many = int(bad.sum()) * (given.numel() // values.numel())
        kind = "NaN" if math.isnan(number) else f"{number:+.3g}"
        found = f"{where}: {name} potentials hold {kind} ({many} bad entries, the first at {first}). "
        if math.isfinite(number):
            raise FieldError(
                f"{found}Sums of numbers beyond {limit:.1g} overflow {values.dtype}. Use -inf for what is forbidden."
            )
        raise FieldError(
            f"{found}Log-potentials must be finite, or -inf for what is forbidden; look for 0/0, log of a negative "
            "number or an overflow where they were computed."
        )


def check_all_values(potentials: Sequence[tuple[str, Tensor, str]]) -> None:
    """The same for many tensors of one dtype and device: (name, values, where). Small ones are looked at together."""
    numbers = sum(values.numel() for _, values, _ in potentials)
    if len(potentials) > 1 and 0 < numbers <= MOST_TOGETHER:
        whole = torch.cat([values.detach().reshape(-1) for _, values, _ in potentials])
        limit = LARGEST_POTENTIAL[whole.dtype]
        if _fit(whole, limit) or not bool(_misfits(whole, limit).any()):
            return
    for name, values, where in potentials:
        check_values(name, values, where)


def _fit(values: Tensor, limit: float) -> bool:
    """Whether all values are finite and small enough, found without a mask."""
    low, high = (bound.item() for bound in values.aminmax())  # both NaN where there is one
    return -limit <= low and high <= limit


def _misfits(values: Tensor, limit: float) -> Tensor:
    """Mask of values that are NaN, +inf or too large."""
    return ~(values <= limit) | ((values < -limit) & (values > -torch.inf))


def check_node_form(node: object, where: str) -> Tensor:
    """Return node potentials [..., nodes, states] if they are floats with at least one state."""
    tensor = check_form(node, "node", "nodes, states", where)
    if tensor.shape[-1] < 1:
        raise FieldError(f"{where}: node potentials have no states. Give each node at least one.")
    return tensor


def check_state_counts(counts: object, node: Tensor, where: str) -> tuple[Tensor, Tensor]:
    """How many states each node has [nodes], and its potentials with -inf beyond them."""
    if counts is None:
        return torch.full((node.shape[-2],), node.shape[-1], device=node.device), node
    states = check_integer(counts, "num_states", where)
    check_same_device(where, node=node, num_states=states)
    if states.shape != (node.shape[-2],):
        raise FieldError(
            f"{where}: num_states has shape {list(states.shape)}, but one count for each of {node.shape[-2]} nodes is "
            "needed."
        )
    if states.numel() and (int(states.min()) < 1 or int(states.max()) > node.shape[-1]):
        raise FieldError(
            f"{where}: num_states runs from {int(states.min())} to {int(states.max())}, but nodes have 1 to "
            f"{node.shape[-1]} states, as many as their potentials."
        )
    beyond = torch.arange(node.shape[-1], device=node.device) >= states[:, None]
    return states, node.masked_fill(beyond, -torch.inf) if bool(beyond.any()) else node


def check_edges_once(edge_index: Tensor, graph: Tensor, num_graphs: int, where: str) -> None:
    """Refuse self-loops, repeated edges and edges between graphs of a batch."""
    source, target = edge_index
    loops = source == target
    if bool(loops.any()):
        column = int(loops.nonzero()[0])
        raise GraphError(
            f"{where}: edge {column} joins node {int(edge_index[0, column])} to itself. "
            "A field has no self-loops; add such scores to the node's potential, or use accord.graphs.topology."
        )
    pair = torch.minimum(source, target).mul_(graph.shape[0]).add_(torch.maximum(source, target)).sort().values
    if bool((pair[1:] == pair[:-1]).any()):
        raise GraphError(
            f"{where}: some undirected edge appears more than once in edge_index ((s, t) and (t, s) are the same "
            "edge). Keep each edge once, as accord.graphs.topology does, and add the tables of repeats."
        )
    if num_graphs == 1:
        return
    crossing = graph[source] != graph[target]
    if bool(crossing.any()):
        raise GraphError(
            f"{where}: edge {int(crossing.nonzero()[0])} joins two graphs of the batch. "
            "Give linked nodes the same graph number."
        )


def check_edge_count(edge_index: object, edge: Tensor, where: str) -> None:
    """Refuse another number of edge tables than of edges."""
    if isinstance(edge_index, Tensor) and edge_index.dim() == 2 and edge_index.shape[1] != edge.shape[-3]:
        raise FieldError(
            f"{where}: there are {edge_index.shape[1]} edges but {edge.shape[-3]} edge tables. "
            "Give one table for each column of edge_index."
        )


def check_graph_count(num_graphs: int, where: str) -> None:
    """Refuse more graphs than kernels can number."""
    if num_graphs > MAX_GRAPHS:
        raise TooLargeError(
            f"{where}: num_graphs is {num_graphs}, but at most {MAX_GRAPHS} graphs fit into one batch. "
            "Give the actual number of graphs."
        )


def check_labels(labels: object, num_nodes: int, num_states: int, lowest: int, where: str) -> Tensor:
    """Return labels [..., nodes] as int64; refuse any outside `lowest` to `num_states - 1`."""
    values = check_integer(labels, "labels", where)
    if values.dim() < 1 or values.shape[-1] != num_nodes:
        raise FieldError(
            f"{where}: labels have shape {list(values.shape)}, but [..., {num_nodes}] is needed. "
            "Give one for each node."
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


def broadcast_replicas(where: str, **axes: torch.Size) -> torch.Size:
    """Common shape of several leading replica axes."""
    if not any(axes.values()):
        return torch.Size()
    distinct = {shape for shape in axes.values() if len(shape)}
    try:
        # torch loads hundreds of modules, for most of a second, when it first broadcasts shapes.
        common = torch.Size(torch.broadcast_shapes(*distinct) if len(distinct) > 1 else next(iter(distinct), ()))
    except RuntimeError:
        listed = ", ".join(f"{name} {list(shape)}" for name, shape in axes.items())
        raise FieldError(
            f"{where}: the leading replica axes do not fit together ({listed}). "
            "Give all the same replicas, or none to what is shared."
        ) from None
    if not common.numel():
        raise FieldError(f"{where}: a replica axis has length 0 ({list(common)}). Give at least one replica.")
    return common
