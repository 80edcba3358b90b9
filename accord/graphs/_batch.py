"""Batches of graphs: the input of encoders."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from accord.errors import GraphError, InputTypeError
from accord.graphs._checks import check_integer, check_tensor
from accord.graphs._derived import Derived, Value
from accord.graphs._share import Share
from accord.graphs._topology import Topology, topology

WHERE = "GraphBatch.collate"


class Border(Protocol):
    """The border of a part of a graph: what brings the rows of ghosts, nodes that other processes own."""

    def exchange(self, values: Tensor) -> Tensor:
        """Fill the rows of ghosts of `values` [nodes, ...], in place, with what their owners have."""


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """One graph, or the disjoint union of many: features, topology, labels and edge attributes.

    A missing label is -1. Edge attributes belong to the undirected edges of the topology, one row each.

    A batch with a `halo` is one process's part of a graph. Its last nodes are ghosts: other processes own them. Every
    edge of an own node is here, so sums over neighbours are complete at own nodes only; `fill_ghosts` gets the others.
    """

    x: Tensor  # [nodes, features]
    topology: Topology
    y: Tensor | None = None  # [nodes] or [nodes, tasks]
    edge_attr: Tensor | None = None  # [edges, attributes]
    share: Share | None = None  # where these are some graphs of a batch that processes share: which
    halo: Border | None = None  # where these are a part of a graph: its border
    _derived: Derived = field(default_factory=Derived, init=False, repr=False)

    @classmethod
    def collate(cls, graphs: Sequence[Data]) -> "GraphBatch":
        """Merge graphs into one batch; a PyG `Batch` among them counts as the graphs it is made of.

        Args:
            graphs: at least one, each with `x`; `edge_index` in any directions. If `y` is absent, those labels are
                missing. Either all graphs with edges have `edge_attr`, or none.
        """
        parts = _flatten(graphs)
        x = _features(parts)
        sizes = torch.tensor([len(part.x) for part in parts], device=x.device)
        index, columns = _edge_index(parts, sizes, x.device)
        graph = torch.repeat_interleave(torch.arange(len(parts), device=x.device), sizes)
        structure = topology(index, len(x), graph, len(parts))
        attributes = _edge_attributes(parts, columns, x)
        carried = None if attributes is None else structure.carry(attributes)
        return cls(x, structure, _labels(parts, x.device), carried)

    def to(self, device: torch.device | str | None = None, dtype: torch.dtype | None = None) -> "GraphBatch":
        """The same graphs on another device, or with features of another precision.

        Raises:
            GraphError: a feature or an edge attribute is too large for that precision.
        """
        x = _convert(self.x, device, dtype, "GraphBatch.to: x")
        if x is self.x:
            return self

        def move(values: Tensor | None) -> Tensor | None:
            return None if values is None else values.to(x.device)

        old = self.topology
        structure = Topology(
            old.num_nodes,
            old.edge_index.to(x.device),
            old.column.to(x.device),
            old.graph.to(x.device),
            old.num_graphs,
            old.notes,
        )
        attributes = self.edge_attr
        if attributes is not None:
            attributes = _convert(attributes, x.device, x.dtype, "GraphBatch.to: edge_attr")
        share = None if self.share is None else self.share.to(x.device)
        return GraphBatch(x, structure, move(self.y), attributes, share, self.halo)

    def fill_ghosts(self, values: Tensor) -> Tensor:
        """Values [nodes, ...] with the rows of ghosts as their owners have them; unchanged where all nodes are here.

        To be called on everything that was summed over neighbours. All processes must call it alike.
        """
        return fill_ghosts(values, self.halo)

    def cached(self, key: Hashable, build: Callable[[], Value]) -> Value:
        """The result of `build`, computed once, for example a normalised adjacency.

        The key must name everything that it depends on beside the batch itself.
        """
        return self._derived.get(key, build)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return self.topology.num_nodes

    @property
    def num_edges(self) -> int:
        """Number of undirected edges of all graphs."""
        return self.topology.num_edges

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return self.topology.num_graphs

    @property
    def num_features(self) -> int:
        """Number of features of a node."""
        return int(self.x.shape[1])

    @property
    def num_edge_attributes(self) -> int:
        """Number of attributes of an edge; 0 if there are none."""
        return 0 if self.edge_attr is None else int(self.edge_attr.shape[1])

    @property
    def labelled_nodes(self) -> Tensor:
        """Which labels are known: a mask of the shape of `y`; without labels, False for each node."""
        if self.y is None:
            return torch.zeros(self.num_nodes, dtype=torch.bool, device=self.x.device)
        return self.y >= 0

    @property
    def labelled_edges(self) -> Tensor:
        """Which edges have both ends labelled: [edges], or [edges, tasks]."""
        known = self.labelled_nodes
        source, target = self.topology.edge_index
        return known[source] & known[target]


def fill_ghosts(values: Tensor, halo: Border | None) -> Tensor:
    """As `GraphBatch.fill_ghosts`, for what a batch keeps: a reference back to the batch would delay its release."""
    if halo is None:
        return values
    if values.requires_grad:
        raise GraphError(
            "GraphBatch.fill_ghosts: gradients do not pass between processes, so networks cannot be trained on parts "
            "of a graph. Call them under torch.no_grad()."
        )
    return halo.exchange(values)


def _flatten(graphs: object) -> list[Data]:
    """A list of plain graphs, each with features."""
    if isinstance(graphs, Data) or not isinstance(graphs, Sequence):
        raise InputTypeError(
            f"{WHERE}: got a {type(graphs).__name__}, not a list of torch_geometric.data.Data. "
            "Put a single graph into a list."
        )
    parts: list[Data] = []
    for number, graph in enumerate(graphs):
        if not isinstance(graph, Data):
            raise InputTypeError(
                f"{WHERE}: graph {number} is a {type(graph).__name__}, not a torch_geometric.data.Data. "
                "Build one with Data(x=features, edge_index=edge_index)."
            )
        if isinstance(graph, Batch) and not hasattr(graph, "_slice_dict"):
            raise GraphError(
                f"{WHERE}: graph {number} is a Batch that does not know the graphs it is made of. Make it with "
                "Batch.from_data_list(graphs), or pass the graphs themselves."
            )
        parts.extend(graph.to_data_list() if isinstance(graph, Batch) else [graph])
    if not parts:
        raise GraphError(f"{WHERE}: the list of graphs is empty. Give at least one.")
    return parts


def _features(parts: list[Data]) -> Tensor:
    """The features of all nodes, one graph after another."""
    features = [part.x for part in parts]
    for number, x in enumerate(features):
        if x is None:
            raise GraphError(f"{WHERE}: graph {number} has no node features x. Set data.x = ... [nodes, features].")
        if not isinstance(x, Tensor) or not x.is_floating_point():
            kind = f"dtype {x.dtype}" if isinstance(x, Tensor) else f"type {type(x).__name__}"
            raise InputTypeError(
                f"{WHERE}: x of graph {number} has {kind}, but a tensor of floats is needed. Convert it with .float()."
            )
        check_tensor(x, "x", f"{WHERE}: graph {number}")
        if x.dim() != 2 or x.shape[1] != features[0].shape[-1]:
            width = features[0].shape[-1] if features[0].dim() == 2 else "features"
            raise GraphError(
                f"{WHERE}: x of graph {number} has shape {list(x.shape)}, but [nodes, {width}] is needed. "
                "All graphs have the same features."
            )
    x = torch.cat(features)
    finite = x.isfinite()
    if not bool(finite.all()):
        node = int((~finite).any(1).nonzero()[0])
        number, node = _locate(node, [len(part) for part in features])
        raise GraphError(
            f"{WHERE}: x of graph {number} has a NaN or infinity at node {node}. Fill in or drop missing values."
        )
    return x


def _edge_index(parts: list[Data], sizes: Tensor, device: torch.device) -> tuple[Tensor, list[int]]:
    """One edge index for all graphs, and how many columns each graph gave."""
    empty = torch.empty(2, 0, dtype=torch.long, device=device)
    pieces = [empty if part.edge_index is None else part.edge_index for part in parts]
    for number, piece in enumerate(pieces):
        if check_integer(piece, "edge_index", f"{WHERE}: graph {number}").dim() != 2 or piece.shape[0] != 2:
            raise GraphError(
                f"{WHERE}: edge_index of graph {number} has shape {list(piece.shape)}, but [2, edges] is needed. "
                "Transpose a list of pairs with .t()."
            )
    index = torch.cat(pieces, 1).long()
    columns = [int(piece.shape[1]) for piece in pieces]
    counts = torch.tensor(columns, device=device)
    # Checked before offsets are added: afterwards a bad number would name a node of the next graph.
    bad = ((index < 0) | (index >= torch.repeat_interleave(sizes, counts))).any(0)
    if bool(bad.any()):
        number, column = _locate(int(bad.nonzero()[0]), columns)
        raise GraphError(
            f"{WHERE}: column {column} of graph {number}'s edge_index is {pieces[number][:, column].tolist()}, but the "
            f"graph has {int(sizes[number])} nodes, numbered from 0. Renumber the nodes or pass all their features."
        )
    return index + torch.repeat_interleave(sizes.cumsum(0) - sizes, counts), columns


def _labels(parts: list[Data], device: torch.device) -> Tensor | None:
    """The labels of all nodes, -1 where a graph has none; None where no graph has any."""
    given = [part.y for part in parts if part.y is not None]
    if not given:
        return None
    tasks = list(given[0].shape[1:]) if isinstance(given[0], Tensor) else []
    pieces = []
    for number, part in enumerate(parts):
        if part.y is None:
            pieces.append(torch.full((len(part.x), *tasks), -1, device=device))
            continue
        y = check_integer(part.y, "y", f"{WHERE}: graph {number}")
        if y.dim() not in (1, 2) or list(y.shape) != [len(part.x), *tasks]:
            wanted = [len(part.x), *tasks]
            raise GraphError(
                f"{WHERE}: y of graph {number} has shape {list(y.shape)}, but {wanted} is needed: a label for every "
                "node (and task, the same number in all graphs), -1 where it is missing."
            )
        pieces.append(y)
    labels = torch.cat(pieces)
    if labels.numel() and int(labels.min()) < -1:
        row = int((labels < -1).reshape(len(labels), -1).any(1).nonzero()[0])
        number, node = _locate(row, [len(part.x) for part in parts])
        raise GraphError(
            f"{WHERE}: y of graph {number} is {labels[row].tolist()} at node {node}. "
            "States are numbered from 0; -1 stands for a missing label."
        )
    return labels


def _edge_attributes(parts: list[Data], columns: list[int], x: Tensor) -> Tensor | None:
    """Attributes of all columns of the edge index, or None where no graph has any."""
    given = [number for number, part in enumerate(parts) if part.edge_attr is not None]
    if not given:
        return None
    pieces: list[Tensor] = []
    for number, (part, count) in enumerate(zip(parts, columns, strict=True)):
        values = part.edge_attr
        if values is None and count == 0:
            continue
        if values is None:
            raise GraphError(
                f"{WHERE}: graph {number} has edges without edge_attr, but graph {given[0]} has edge_attr. "
                "Give all graphs edge attributes, or none."
            )
        if not isinstance(values, Tensor):
            raise InputTypeError(
                f"{WHERE}: edge_attr of graph {number} is a {type(values).__name__}, not a torch.Tensor."
            )
        check_tensor(values, "edge_attr", f"{WHERE}: graph {number}")
        rows = values[:, None] if values.dim() == 1 else values
        if rows.dim() != 2 or len(rows) != count or (pieces and rows.shape[1] != pieces[0].shape[1]):
            raise GraphError(
                f"{WHERE}: edge_attr of graph {number} has shape {list(values.shape)}, but one row for each of the "
                f"{count} columns of its edge_index is needed, as wide as in the other graphs."
            )
        if not bool(rows.isfinite().all()):
            raise GraphError(f"{WHERE}: edge_attr of graph {number} has a NaN or infinity. Fill in missing values.")
        pieces.append(_convert(rows, x.device, x.dtype, f"{WHERE}: edge_attr of graph {number}"))
    return torch.cat(pieces) if pieces else None


def _convert(values: Tensor, device: torch.device | str | None, dtype: torch.dtype | None, name: str) -> Tensor:
    """Finite numbers on another device or in another precision; numbers that become infinite are refused."""
    converted = values.to(device, dtype)
    narrower = torch.finfo(converted.dtype).max < torch.finfo(values.dtype).max if values.is_floating_point() else False
    if narrower and not bool(converted.isfinite().all()):
        row, column = converted.isinf().nonzero()[0].tolist()
        raise GraphError(
            f"{name} holds {float(values[row, column])} in row {row}, column {column}, which is too large for "
            f"{converted.dtype}. Rescale the column, e.g. by its logarithm."
        )
    return converted


def _locate(position: int, sizes: list[int]) -> tuple[int, int]:
    """The part that a position of the whole falls in, and the position within that part."""
    number = 0
    while position >= sizes[number]:
        position -= sizes[number]
        number += 1
    return number, position
