"""A benchmark: three lists of graphs, and the facts needed to train and score on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch_geometric.data import Data

Level = Literal["graph", "node"]
Counted = Literal["edges", "arcs"]


class Splits(NamedTuple):
    """The graphs of a data set, as its reader returns them."""

    train: list[Data]
    val: list[Data]
    test: list[Data]
    source: str


@dataclass(frozen=True)
class SplitStatistics:
    """Size of one split, as tables of data sets show it."""

    graphs: int
    average_nodes: float
    average_edges: float
    counted: Counted  # what `average_edges` counts: undirected edges, or arcs, of which there are twice as many


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Graphs with known labels, split into training, validation and test.

    Each graph has `x` [nodes, features], `y` and `edge_index` with both directions of every edge. Graphs that
    were cut out of a larger one keep `node_id`, which identifies nodes that also occur in training graphs.
    """

    name: str
    train: Sequence[Data]
    val: list[Data]
    test: list[Data]
    num_states: int  # values a label can take
    num_tasks: int  # labels per node: y is [nodes] for one, [nodes, tasks] for more
    level: Level  # unit of the score: "node", or a "graph" whose nodes are all right
    counted: Counted  # what the tables of the benchmark count
    source: str  # where the data comes from, and what differs from the original
    features: str = "raw"  # what was done to the features
    label_names: list[str] | None = None  # of the states, where they are known
    task_names: list[str] | None = None  # of the labels of a node, where there are several

    @property
    def num_features(self) -> int:
        """Length of a node's feature vector."""
        return int(self.train[0].num_node_features)

    def statistics(self) -> dict[str, SplitStatistics]:
        """Number of graphs and their average size, by split."""
        splits: dict[str, Sequence[Data]] = {"train": self.train, "val": self.val, "test": self.test}
        return {name: split_statistics(graphs, self.counted) for name, graphs in splits.items()}

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={split.graphs}" for name, split in self.statistics().items())
        return f"{type(self).__name__}({self.name!r}, {sizes}, source={self.source!r})"


def split_statistics(graphs: Sequence[Data], counted: Counted) -> SplitStatistics:
    """Number of graphs and their average size; all zero for an empty split."""
    count = max(len(graphs), 1)
    nodes = arcs = 0
    for graph in graphs:
        nodes, arcs = nodes + int(graph.num_nodes), arcs + int(graph.edge_index.shape[1])
    edges = arcs / 2 if counted == "edges" else arcs
    return SplitStatistics(len(graphs), nodes / count, edges / count, counted)
