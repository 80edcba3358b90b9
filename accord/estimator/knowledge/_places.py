"""Nodes and edges of a graph as users name them: by number, or by the names that the graph carries."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputTypeError

NODE_NAMES = "node_names"  # of a Data: a list of str


@dataclass(frozen=True, eq=False)
class Places:
    """Nodes and edges of one graph.

    Args:
        graph: with `x`, and `node_names` if its nodes have names.
        edge_index: [2, edges], its undirected edges, each once.
        where: the call and the graph, for messages.
    """

    graph: Data
    edge_index: Tensor
    where: str

    @property
    def num_nodes(self) -> int:
        """How many nodes the graph has."""
        return len(self.graph.x)

    @cached_property
    def names(self) -> list[str] | None:
        """Names of the nodes; None where they have none."""
        given = self.graph.get(NODE_NAMES)
        if given is None:
            return None
        listed = [name for part in given for name in (part if isinstance(part, (list, tuple)) else [part])]
        if len(listed) != self.num_nodes:
            raise GraphError(
                f"{self.where}: the graph has {self.num_nodes} nodes and {len(listed)} node_names. Give one for each."
            )
        return [str(name) for name in listed]

    @cached_property
    def _number(self) -> dict[str, int]:
        """Node by name; -1 for a name that occurs twice."""
        found: dict[str, int] = {}
        for place, name in enumerate(self.names or []):
            found[name] = -1 if name in found else place
        return found

    def title(self, node: int) -> str:
        """A node in a message: its name, or its number."""
        return str(node) if self.names is None else repr(self.names[node])

    def node(self, key: object, option: str) -> int:
        """The number of a node that is given by number or name.

        Args:
            key: what the user wrote.
            option: the argument it came with, for messages.
        """
        start = f"{self.where}: {option} names the node {str(key)[:80]!r}"
        if isinstance(key, Integral) and not isinstance(key, bool):
            if 0 <= int(key) < self.num_nodes:
                return int(key)
            raise GraphError(f"{start}, but nodes are numbered from 0 to {self.num_nodes - 1}. Correct the number.")
        if not isinstance(key, str):
            raise InputTypeError(
                f"{self.where}: {option} names a node by a {type(key).__name__}. Give its number (int), or its name."
            )
        if self.names is None:
            raise GraphError(f"{start}, but the graph has no node_names. Give the number of the node as an int.")
        place = self._number.get(key)
        if place is None:
            shown = ", ".join(map(repr, self.names[:4]))
            raise GraphError(f"{start}, which is not among node_names ({shown}, ..). Correct the name.")
        if place < 0:
            raise GraphError(f"{start}, but several nodes have this name. Give the number of the node.")
        return place

    @cached_property
    def _sorted_edges(self) -> tuple[Tensor, Tensor]:
        low, high = self.edge_index.amin(0), self.edge_index.amax(0)
        return (low * self.num_nodes + high).sort()

    def edge(self, key: object, option: str) -> tuple[int, bool]:
        """The column of an edge (node, node) in `edge_index`, and whether it is stored the other way round."""
        if not isinstance(key, Sequence) or isinstance(key, str) or len(key) != 2:
            raise InputTypeError(
                f"{self.where}: {option} has the key {str(key)[:80]!r}. Give an edge as a pair of nodes: (0, 1)."
            )
        first, second = (self.node(end, option) for end in key)
        keys, order = self._sorted_edges
        wanted = min(first, second) * self.num_nodes + max(first, second)
        place = int(torch.searchsorted(keys, wanted)) if len(keys) else 0
        if place >= len(keys) or int(keys[place]) != wanted:
            raise GraphError(
                f"{self.where}: {option} names an edge between nodes {self.title(first)} and {self.title(second)}, but "
                "the graph has no such edge. Name nodes that are joined by an edge."
            )
        column = int(order[place])
        return column, int(self.edge_index[0, column]) != first
