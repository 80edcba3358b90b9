"""Readers of graph files, whatever their form. No reader executes code."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch_geometric.data import Data, HeteroData

from accord.datasets._sources import check_regular_file, reading
from accord.datasets.readers._arrays import read_npz
from accord.datasets.readers._findings import Findings, Unreadable
from accord.datasets.readers._json import read_json
from accord.datasets.readers._networks import read_graphml, tables_of
from accord.datasets.readers._parquet import is_graph_file, read_parquet_graphs
from accord.datasets.readers._raw import RawGraph, find_label_names
from accord.datasets.readers._saved import read_saved, saved_graph
from accord.datasets.readers._sequences import raw_sentences, sequence_suffix
from accord.datasets.readers.tables import (
    MAPPING_FILE,
    ColumnSet,
    TableGraphs,
    TableMapping,
    decide_text,
    encode,
    find_mapping,
    is_table_folder,
    read_mapping,
    read_table_folder,
    settle,
)
from accord.errors import AccordError, DataNotFoundError, GraphError, InputTypeError
from accord.graphs import EDGES, NODES, GraphColumns, align, common_columns

FORMS = ".npz, .json, .graphml, .pt, .parquet, .conll or .tsv, or a folder with nodes.csv and edges.csv"
SKIPPED = (MAPPING_FILE, "README.md", "README.txt", "LICENSE")  # files of a folder of graphs that are no graphs


@dataclass
class Reading:
    """How files are read: the mapping of tables, the columns of a fitted model, where problems go, and whether labels
    count."""

    mapping: TableMapping | None = None
    columns: GraphColumns = GraphColumns()
    findings: Findings = field(default_factory=Findings)
    labels: bool = True

    @classmethod
    def of(
        cls,
        path: Path,
        mapping: TableMapping | str | Path | None,
        columns: GraphColumns | None = None,
        collect: bool = False,
    ) -> "Reading":
        """How the graphs at a path are read; without a mapping, the mapping file near the path counts."""
        found = find_mapping(path) if mapping is None else mapping
        found = found if found is None or isinstance(found, TableMapping) else read_mapping(found)
        findings = Findings(collect, mapping=None if found is None else found.path)
        return cls(found, columns or GraphColumns(), findings)

    def settle(self, tables: TableGraphs) -> None:
        """Read the tables that follow as this one was understood."""
        mapping = self.mapping or TableMapping()
        self.mapping = replace(mapping, nodes=settle(mapping.nodes, tables.roles))

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Collect what goes wrong inside, if problems are collected."""
        try:
            yield
        except Unreadable:
            pass
        except AccordError as error:
            self.findings.error(error)


Source = RawGraph | TableGraphs


def read_graph(
    path: str | Path,
    label_names: Sequence[str] | None = None,
    with_labels: bool = True,
    mapping: TableMapping | str | Path | None = None,
    columns: GraphColumns | None = None,
) -> Data:
    """Read one graph.

    `.npz`: arrays `x` [nodes, features] (or CSR: `x_indptr`, `x_indices`, `x_shape`, `x_data`), `edge_index`
    [2, edges]; optional `y` [nodes] or [nodes, tasks], `edge_attr` [edges, attributes], `node_id` [nodes],
    `feature_names` [features], `node_names` [nodes], and `train_mask`, `val_mask`, `test_mask` [nodes], which say what
    labels are for.
    `.json`: an object with the same keys and nested lists; null is a missing label.
    A folder: a table of nodes (`nodes.csv`, `.csv.gz` or `.parquet`) with `id`, feature columns, and `label` (or
    `label_*` for several tasks); a table of edges with `source`, `target`, and attribute columns. An empty label is a
    missing label. Masks are columns of 0 and 1. Columns of text become one column of 0 and 1 for each category;
    missing numbers are marked. A mapping names files and columns that are called otherwise.
    `.graphml`: attributes of nodes and edges are read like columns of tables.
    `.conll`, `.conllu`, `.tsv` (also `.gz`): sentences, a word and its label on each line, an empty line after each
    sentence. Each is a path with `tokens`.
    `.pt`: a PyG `Data` or `HeteroData` saved by torch; it is read with `weights_only=True`.
    `.parquet`: many graphs, a row each, with the columns of the .json form as nested lists and, optionally, their names
    as `graph` (see `write_graphs`).

    Numbers are plain decimals in the range of float32. Equal places of a CSR matrix are added, as SciPy does.

    The graph has `feature_names` and `feature_kinds`, `edge_names` and `edge_kinds`, and `node_names` where the file
    names features, edge attributes and nodes; `graph_name` is the name of the file, or of its graph.

    Args:
        path: the file or folder.
        label_names: names of the states, if labels are names; None takes the names in the file, sorted, and stores
            them in the graph's `label_names`.
        with_labels: False ignores the labels.
        mapping: which columns of tables hold what, or the path of a mapping file; None looks for accord.toml in the
            folder, and in those of its split and data folder.
        columns: of a fitted model (`columns_`), so that columns are read as in training.
    """
    graphs = _read([Path(path)], label_names, with_labels, Reading.of(Path(path), mapping, columns))
    if len(graphs) != 1:
        raise GraphError(f"{path}: holds {len(graphs)} graphs, not one. Read them with read_graphs.")
    return graphs[0]


def read_graphs(
    path: str | Path,
    label_names: Sequence[str] | None = None,
    with_labels: bool = True,
    mapping: TableMapping | str | Path | None = None,
    columns: GraphColumns | None = None,
) -> list[Data]:
    """Read one graph, or all graphs of a folder or file, in the order of their names; see `read_graph`."""
    way = Reading.of(Path(path), mapping, columns)
    return _read(graph_entries(Path(path), way.mapping), label_names, with_labels, way)


def read_sentences(
    path: str | Path,
    label_column: int | None = None,
    label_names: Sequence[str] | None = None,
    with_labels: bool = True,
) -> list[Data]:
    """Read a file of tagged sentences, each as a path with `tokens`, and with labels if the file has any.

    Args:
        path: `.conll`, `.conllu` or `.tsv`, also compressed (`.gz`); see `read_graph`.
        label_column: number of the column with the labels, from 0; None takes the last one (UPOS in .conllu).
        label_names: names of the states; None takes those of the file, sorted.
        with_labels: False ignores the labels.
    """
    path = Path(path)
    if sequence_suffix(path) is None:
        raise GraphError(f"{path}: sentences are read from .conll, .conllu and .tsv files, and these with .gz.")
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such file. Give a file of sentences.")
    with reading(path):
        return to_data(raw_sentences(path, label_column, with_labels), label_names, with_labels, Reading())


def from_networkx(
    graph: Any, mapping: TableMapping | None = None, label_names: Sequence[str] | None = None, with_labels: bool = True
) -> Data:
    """A NetworkX graph as PyG `Data`: attributes of nodes and edges are read like columns of tables.

    Args:
        graph: any NetworkX graph; keys of nodes become `node_names`. An attribute may be a number, text, or a list of
            numbers, which makes several columns.
        mapping: which attributes hold what; None guesses by the usual names (`label`, `split`).
        label_names: names of the states; None takes those of the graph, sorted.
        with_labels: False ignores the labels.
    """
    if not all(hasattr(graph, part) for part in ("nodes", "edges", "adj")):
        raise GraphError(f"from_networkx: got a {type(graph).__name__}, not a NetworkX graph. Give a networkx.Graph.")
    path = Path("from_networkx")
    way = Reading(mapping)
    tables = tables_of(graph, path, mapping or TableMapping(), (None, None), way.findings, str(graph.name or "graph"))
    graphs = to_data([tables], label_names, with_labels, way)
    if len(graphs) != 1:
        raise GraphError(f"from_networkx: an attribute divides the graph into {len(graphs)}. Give them one by one.")
    return graphs[0]


def from_hetero(graph: HeteroData) -> Data:
    """A `HeteroData` with one type of nodes as `Data`; the type of each edge becomes an edge attribute."""
    if not isinstance(graph, HeteroData):
        raise InputTypeError(
            f"from_hetero: got a {type(graph).__name__}, not a torch_geometric.data.HeteroData. An ordinary Data needs "
            "no conversion."
        )
    return to_data([saved_graph(Path("from_hetero"), graph, None)], None, True, Reading())[0]


def _read(paths: Sequence[Path], label_names: Sequence[str] | None, with_labels: bool, way: Reading) -> list[Data]:
    way = replace(way, labels=with_labels)
    return to_data([source for path in paths for source in read_sources(path, way)], label_names, with_labels, way)


def to_data(
    sources: Sequence["Source"], label_names: Sequence[str] | None, with_labels: bool, way: Reading
) -> list[Data]:
    """Graphs of sources; those without names for labels take the names that occur, sorted."""
    raws = [raw for raws in encode_sources(sources, len(sources), way) for raw in raws]
    if not with_labels or label_names is not None:
        return same_columns([raw.to_data(label_names, with_labels) for raw in raws])
    names = find_label_names(raws)
    graphs = same_columns([raw.to_data(names) for raw in raws])
    if names is not None:
        for graph in graphs:
            graph.label_names = names
    return graphs


def same_columns(graphs: list[Data]) -> list[Data]:
    """Graphs with all columns that any of them has; graphs that do not fit together stay as they are."""
    for place in (NODES, EDGES):
        try:
            columns = common_columns(graphs, place, "read_graphs")
        except GraphError:  # whoever uses them together says what is wrong
            continue
        graphs = [align(graph, columns, place, "read_graphs") for graph in graphs]
    return graphs


def graph_entries(path: Path, mapping: TableMapping | None = None) -> list[Path]:
    """The graphs at a path: the path itself, or the entries of a folder, sorted by name, without hidden files."""
    if not path.is_dir() or is_table_folder(path, mapping or find_mapping(path)):
        return [path]
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith(".") and entry.name not in SKIPPED)
    if not entries:
        raise DataNotFoundError(f"{path}: the folder is empty. Put graphs into it: {FORMS}.")
    return entries


def read_sources(path: Path, way: Reading) -> list[Source]:
    """Read a file or folder of tables; text and labels stay as the file has them."""
    mapping = way.mapping or TableMapping()
    known = (way.columns.nodes, way.columns.edges)
    if path.is_dir():
        if not is_table_folder(path, way.mapping):
            raise GraphError(f"{path}: is a folder without nodes.csv, so not a graph. Give {FORMS}.")
        with reading(path):
            return [read_table_folder(path, mapping, known, way.findings)]
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such file or folder. Give {FORMS}.")
    check_regular_file(path)
    with reading(path):
        if path.suffix == ".graphml":
            return [read_graphml(path, mapping, known, way.findings)]
        if sequence_suffix(path) is not None:
            return list(raw_sentences(path, checked=way.labels))
        if path.suffix == ".pt":
            return list(read_saved(path))
        if is_graph_file(path):
            return list(read_parquet_graphs(path))
        if path.suffix in READERS:
            return [READERS[path.suffix](path)]
    raise GraphError(f"{path}: graphs cannot be read from {path.suffix or 'such'} files. Give {FORMS}.")


def encode_sources(sources: Sequence[Source], training: int, way: Reading) -> list[list[RawGraph]]:
    """The graphs of each source, with text encoded; the first `training` sources decide how columns are read."""
    decided: list[dict[str, str]] = []
    numeric: list[set[str]] = []
    for sets, known in ((_node_sets(sources), way.columns.nodes), (_edge_sets(sources), way.columns.edges)):
        first = [found for found in sets[:training] if found is not None]
        decided.append(decide_text(first, known, way.findings))
        numeric.append({column.name for found in first for column in found.columns if column.numbers is not None})
    encoded: list[list[RawGraph]] = []
    for source in sources:
        if isinstance(source, RawGraph):
            encoded.append([source])
            continue
        with reading(source.table.path):
            nodes = encode(source.nodes, decided[0], numeric[0])
            if not nodes.names:
                way.findings.problem(
                    f"{source.table.path}: no column can be used as a feature: all are empty, or text that differs in "
                    "most rows. Add one, or list columns of text under `categories` in the mapping file."
                )
            encoded.append(source.graphs(nodes, encode(source.edges, decided[1], numeric[1])))
    return encoded


def _node_sets(sources: Sequence[Source]) -> list[ColumnSet | None]:
    return [None if isinstance(source, RawGraph) else source.nodes for source in sources]


def _edge_sets(sources: Sequence[Source]) -> list[ColumnSet | None]:
    return [None if isinstance(source, RawGraph) else source.edges for source in sources]


READERS: dict[str, Callable[[Path], RawGraph]] = {".npz": read_npz, ".json": read_json}
