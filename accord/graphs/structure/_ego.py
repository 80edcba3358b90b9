"""Ego networks: a node, its direct neighbours, and every edge among them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputTypeError
from accord.graphs._checks import MAX_NODES, check_edge_index, check_integer
from accord.graphs._data import count_nodes
from accord.graphs._masks import MASKS

# Lists that a graph and its parts have in common.
SHARED_LISTS = ("feature_names", "feature_kinds", "edge_names", "edge_kinds", "label_names", "task_names")


def ego_network(data: Data, node: int) -> Data:
    """Cut out one node's ego network; for many nodes, `ego_networks` sorts the edges only once.

    Args:
        data: the graph to cut from.
        node: the node in the centre.

    Returns:
        A graph as described at `ego_networks`.
    """
    if isinstance(node, bool) or not isinstance(node, (int, np.integer)):
        raise InputTypeError(
            f"ego_network: node is a {type(node).__name__}, not an int. For several nodes call ego_networks."
        )
    if abs(node) > MAX_NODES:
        raise GraphError("ego_network: node is larger than any graph. Ask for a node of this graph.")
    return _cut(data, torch.tensor([int(node)]), "ego_network")[0]


def ego_networks(data: Data, nodes: Tensor | Sequence[int]) -> list[Data]:
    """Cut out the ego network of each of `nodes`.

    Sorting the edges costs O(E log E) once; after that an ego network costs the sum of its nodes' degrees.

    Args:
        data: the graph to cut from: `edge_index` in any directions, optionally `x`, `y` and `edge_attr`.
        nodes: numbers of the nodes in the centres; a node may be named more than once.

    Returns:
        One graph per node, with both directions of every edge, sorted by source, and without self-loops or
        repeats. The ego node comes first, then its neighbours in ascending order. `x`, `y` and `edge_attr`
        are carried over where the graph has them (an edge given in one direction only has its attributes in
        both), and so are names of nodes, labels and columns. `node_id` holds the nodes' numbers in `data`, `centre`
        the position of the ego node: 0.
    """
    return _cut(data, _check_nodes(nodes), "ego_networks")


def _check_nodes(nodes: object) -> Tensor:
    """The ego nodes as an int64 vector."""
    where = "ego_networks"
    if not isinstance(nodes, Tensor):
        try:
            # An empty list would come out as float.
            nodes = torch.as_tensor(nodes) if len(nodes) else torch.empty(0, dtype=torch.long)  # type: ignore[arg-type]
        except (TypeError, ValueError, RuntimeError) as error:
            raise InputTypeError(
                f"{where}: nodes is a {type(nodes).__name__} that does not hold whole numbers ({error}). "
                "Give a list of ints or an integer tensor."
            ) from error
    if nodes.dtype == torch.bool:
        # The general check advises .long(), which would turn a mask into nodes 0 and 1.
        raise InputTypeError(
            f"{where}: nodes is a mask (dtype bool), not a list of nodes. Pass mask.nonzero().flatten()."
        )
    vector = check_integer(nodes, "nodes", where)
    if vector.dim() != 1:
        raise GraphError(f"{where}: nodes has shape {list(vector.shape)}, but a vector is needed. Flatten it first.")
    return vector


@dataclass(frozen=True)
class _Adjacency:
    """Both directions of every edge in CSR form: node `n`'s arcs are `start[n]` to `start[n + 1]`."""

    start: np.ndarray  # [nodes + 1]
    target: np.ndarray  # [arcs], ascending within each source
    column: np.ndarray  # [arcs]: the input's column, for attributes

    @classmethod
    def of(cls, edge_index: np.ndarray, num_nodes: int) -> "_Adjacency":
        """Add missing directions, drop self-loops and repeats."""
        columns = np.flatnonzero(edge_index[0] != edge_index[1])
        source, target = edge_index[:, columns]
        # Given directions come before added ones, and `unique` keeps the first: an arc keeps its own attributes.
        key = np.concatenate([source * num_nodes + target, target * num_nodes + source])
        key, first = np.unique(key, return_index=True)
        source, target = np.divmod(key, num_nodes) if num_nodes else (key, key)
        start = np.zeros(num_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(source, minlength=num_nodes), out=start[1:])
        return cls(start, target, np.concatenate([columns, columns])[first])

    def members(self, node: int) -> np.ndarray:
        """The ego node, then its neighbours."""
        return np.concatenate([[node], self.target[self.start[node] : self.start[node + 1]]])

    def arcs_from(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All arcs that leave `nodes`: the entry of `nodes` that each leaves, and its number."""
        start, degree = self.start[nodes], self.start[nodes + 1] - self.start[nodes]
        leaves = np.repeat(np.arange(nodes.size), degree)
        # Count 0, 1, ... within each node's run of arcs.
        within = np.arange(leaves.size) - np.repeat(np.cumsum(degree) - degree, degree)
        return leaves, start[leaves] + within


def _cut(data: Data, nodes: Tensor, where: str) -> list[Data]:
    """The ego networks of checked `nodes` in unchecked `data`."""
    num_nodes, edge_index = _check_graph(data, where)
    if nodes.numel() and (int(nodes.min()) < 0 or int(nodes.max()) >= num_nodes):
        bad = int(nodes[(nodes < 0) | (nodes >= num_nodes)][0])
        raise GraphError(
            f"{where}: there is no node {bad}: the graph has {num_nodes} nodes, numbered from 0. "
            "Ask for nodes of this graph."
        )
    adjacency = _Adjacency.of(edge_index.cpu().numpy(), num_nodes)
    # Position in the ego network of each node of the graph; one scratch vector serves all egos.
    position = np.full(num_nodes, -1)
    egos = []
    for node in nodes.tolist():
        members = adjacency.members(node)
        position[members] = np.arange(members.size)
        source, arc = adjacency.arcs_from(members)
        target = position[adjacency.target[arc]]
        inside = target >= 0
        position[members] = -1

        source, target, arc = source[inside], target[inside], arc[inside]
        order = np.lexsort((target, source))
        edges = torch.from_numpy(np.stack([source[order], target[order]]))
        columns = torch.from_numpy(adjacency.column[arc[order]])
        egos.append(_slice(data, torch.from_numpy(members), edges, columns))
    return egos


def _slice(data: Data, members: Tensor, edge_index: Tensor, columns: Tensor) -> Data:
    """One ego network with the features, labels, edge attributes and masks of its part of `data`."""
    device = data.edge_index.device if data.edge_index is not None else members.device
    ego = Data(edge_index=edge_index.to(device))
    for key, index in (("x", members), ("y", members), ("edge_attr", columns), *((mask, members) for mask in MASKS)):
        values = data.get(key)
        if values is not None:
            # values[index] would start all threads for a few rows, and stall when cores are busy.
            ego[key] = values.index_select(0, index.to(values.device))
    ego.node_id = members.to(device)
    ego.centre = 0
    for key in SHARED_LISTS:
        if data.get(key) is not None:
            ego[key] = data[key]
    if data.get("node_names") is not None:
        ego.node_names = [data.node_names[node] for node in members.tolist()]
    if ego.x is None:
        ego.num_nodes = members.numel()  # PyG cannot infer the number of nodes otherwise
    return ego


def _check_graph(data: object, where: str) -> tuple[int, Tensor]:
    """The number of nodes and the edge index of a graph whose parts fit together."""
    if not isinstance(data, Data):
        raise InputTypeError(
            f"{where}: got a {type(data).__name__}, not a torch_geometric.data.Data. "
            "Build one with Data(x=features, edge_index=edge_index)."
        )
    num_nodes = count_nodes(data, where)
    edge_index = data.edge_index if data.edge_index is not None else torch.empty(2, 0, dtype=torch.long)
    edge_index = check_edge_index(edge_index, num_nodes, where)
    for key, count, things in (
        ("x", num_nodes, "nodes"),
        ("y", num_nodes, "nodes"),
        ("edge_attr", int(edge_index.shape[1]), "columns of the edge_index"),
        *((mask, num_nodes, "nodes") for mask in MASKS),
    ):
        values = data.get(key)
        if values is not None and (not isinstance(values, Tensor) or values.dim() == 0 or len(values) != count):
            shape = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise GraphError(
                f"{where}: {key} is {shape}, but a tensor with one row for each of the {count} {things} is "
                f"needed. Give every row, or set data.{key} = None to leave it out."
            )
    return num_nodes, edge_index
