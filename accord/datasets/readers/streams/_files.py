"""The graphs of files as a stream: a training set that may be larger than memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from accord._files import cache_folder
from accord.datasets.readers._blocks import graph_blocks
from accord.datasets.readers._graphs import Reading, Source, to_data
from accord.datasets.readers.streams._scratch import Scratch
from accord.datasets.readers.tables import TableGraphs, TableMapping, find_mapping, read_mapping
from accord.errors import GraphError
from accord.graphs import (
    EDGES,
    NODES,
    TRAIN_MASK,
    Columns,
    GraphStream,
    align,
    column_difference,
    columns_of,
    has_labels,
    has_tokens,
    labels_within,
)
from accord.graphs.features._columns import Place

BLOCK = 256  # graphs that are converted together


class GraphFiles(GraphStream):
    """The graphs of a file or folder, read from disk one by one: those of `read_graphs`, in the same order.

    Every file is read and checked once, at the start, and written to a temporary file from which any graph can be read
    at once. Memory holds one file at a time (of a Parquet file, one row group) and a few numbers for each graph.

        train = accord.datasets.GraphFiles("train")
        model = accord.NodeClassifier().fit(train, validation)

    Args:
        path: as for `read_graphs`. Tables of nodes must not have columns of text, whose categories all graphs decide
            together.
        mapping: which columns of tables hold what, or the path of a mapping file; None looks for accord.toml.
        scratch: folder for the temporary file, as large as the graphs; None takes the user's cache folder.
    """

    def __init__(
        self,
        path: str | Path,
        mapping: TableMapping | str | Path | None = None,
        scratch: str | Path | None = None,
    ) -> None:
        self.path = Path(path)
        self._scratch = Scratch(cache_folder() if scratch is None else Path(scratch))
        found = find_mapping(self.path) if mapping is None else mapping
        common = _Common()
        tables = found if found is None or isinstance(found, TableMapping) else read_mapping(found)
        for place, graph in _read_all(self.path, tables):
            common.add(graph, place)
            self._scratch.add(graph)
        self._columns = [(place, common.columns(place)) for place in (NODES, EDGES)]
        self.label_names = sorted(common.names) or None  # None where labels are numbers

    def __len__(self) -> int:
        """How many graphs the files hold."""
        return len(self._scratch)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {len(self)} graphs)"

    def read(self, number: int) -> Data:
        """One of the graphs, with the columns and names of labels that all graphs have together."""
        graph = self._scratch.read(number)
        for place, columns in self._columns:
            graph = align(graph, columns, place, f"{self.path}, graph {graph.graph_name!r}")
        if self.label_names is None:
            return graph
        own = graph.get("label_names")
        if own is not None and own != self.label_names and graph.y is not None:
            states = [*(self.label_names.index(name) for name in own), -1]  # -1, a missing label, picks the last one
            graph.y = torch.tensor(states)[graph.y]
        graph.label_names = self.label_names
        return graph


def _read_all(path: Path, mapping: TableMapping | None) -> Iterator[tuple[str, Data]]:
    """All graphs in order, each with where it is."""
    for block in graph_blocks(path, BLOCK, mapping):
        for piece in block.pieces:
            way = Reading(mapping)
            sources = piece.read(way)
            for source in sources:
                _refuse_text(source)
            graphs = to_data(sources, None, True, way)
            yield from zip(piece.places(len(graphs)), graphs, strict=True)


def _refuse_text(source: Source) -> None:
    if not isinstance(source, TableGraphs):
        return
    for table in (source.nodes, source.edges):
        for column in table.columns:
            if column.texts is not None:
                raise GraphError(
                    f"{table.path}: column {column.name!r} holds text. Its categories are decided by all graphs "
                    "together, so such tables cannot be streamed. Leave the column out (`ignore` in the mapping file), "
                    "or write a Parquet file of the graphs where they fit into memory: write_graphs("
                    "read_graphs(folder), 'graphs.parquet')."
                )


class _Common:
    """What graphs have in common, one after the other; a graph that does not fit those before it is refused."""

    def __init__(self) -> None:
        self.names: set[str] = set()  # of labels
        self._kinds: dict[Place, dict[str, str]] = {}  # of columns, by name, in the order in which they occur
        self._first: dict[str, tuple[Any, str]] = {}  # what was found first, and where

    def columns(self, place: Place) -> Columns | None:
        """The columns of all graphs; None where none has names for them."""
        kinds = self._kinds.get(place)
        return None if kinds is None else Columns(tuple(kinds), tuple(kinds.values()))

    def add(self, graph: Data, where: str) -> None:
        """Take in a graph from a place in a file."""
        labels_within(graph, TRAIN_MASK, where)  # refuses masks that cannot be used
        for place in (NODES, EDGES):
            self._add_columns(graph, place, where)
        tasks = None if graph.y is None else 1 if graph.y.dim() == 1 else int(graph.y.shape[1])
        self._compare("labels a node", tasks, where)
        self._compare("for its nodes", "tokens" if has_tokens(graph) else "no tokens", where)
        if has_labels(graph):
            self._compare("for labels", "names" if "label_names" in graph else "numbers", where)
        self.names.update(graph.get("label_names") or ())

    def _add_columns(self, graph: Data, place: Place, where: str) -> None:
        own, values = columns_of(graph, place, where), graph.get(place.values)
        if place is EDGES and not graph.num_edges:  # then kinds are not known
            return
        if own is None:
            self._compare(f"{place.what}s a row", 0 if values is None else int(values.shape[1]), where)
            return
        first, there = self._first.setdefault(place.names, (own, where))
        difference = column_difference(first, own)
        if difference:
            raise GraphError(f"{where}: {place.what} names differ from those of {there}: {difference}")
        kinds = self._kinds.setdefault(place, {})
        for name, kind in zip(own.names, own.kinds, strict=True):
            kinds.setdefault(name, kind)

    def _compare(self, what: str, value: object, where: str) -> None:
        """Refuse a value that differs from that of the first graph; None is nothing to compare."""
        if value is None:
            return
        first, there = self._first.setdefault(what, (value, where))
        if value != first:
            raise GraphError(
                f"{where}: has {value} {what}, but {there} has {first}. All training graphs need the same: correct the "
                "file, or leave it out."
            )
