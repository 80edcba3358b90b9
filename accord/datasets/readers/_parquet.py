"""Many graphs in one Parquet file: a row is a graph, and its columns are those of the .json form, as nested lists.

Columns: `x` (lists of rows) and `edge_index` (two lists); optionally `graph` (a name), `y`, `edge_attr`, `node_id`,
masks and `node_names`. What all graphs share (names and kinds of columns, names of labels and tasks) is stored once, as
json in the metadata of the schema. Rows are read in ranges, so that a file may be larger than memory.
"""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from accord._files import replacing
from accord.datasets._sources import check_memory, check_regular_file
from accord.datasets.readers._arrays import GRAPH_ARRAYS, assemble
from accord.datasets.readers._nested import RowCells
from accord.datasets.readers._raw import RawGraph
from accord.errors import AccordError, DataNotFoundError, GraphError
from accord.graphs._checks import check_tensor

SUFFIX = ".parquet"
METADATA = b"accord"  # key of the schema's metadata
NAME, NODE_NAMES = "graph", "node_names"
SHARED = ("feature_names", "feature_kinds", "edge_names", "edge_kinds", "task_names", "label_names")
ROW_GROUP = 1000  # graphs that are read together; a block of graphs should not need many times its size


def write_graphs(graphs: Sequence[Data], path: str | Path, label_names: Sequence[str] | None = None) -> None:
    """Write graphs to one `.parquet` file, a row each, in the form that `read_graphs` reads.

    Graphs need the same columns: names and kinds of features are stored once. `graph_name` becomes the column `graph`.

    Args:
        graphs: with `x` and `edge_index`; `y`, `edge_attr`, `node_id`, masks and `node_names` are written if present.
        path: ends in .parquet.
        label_names: written in place of the state numbers; None takes those of the first graph, if it has any.
    """
    path = Path(path)
    if path.suffix != SUFFIX:
        raise GraphError(f"write_graphs: {path}: many graphs are written to .parquet files. Choose that suffix.")
    if not graphs:
        raise GraphError(f"write_graphs: {path}: there are no graphs to write. Give at least one.")
    arrow, parquet = (_package(name, path) for name in ("pyarrow", "pyarrow.parquet"))
    shared = {name: graphs[0].get(name) for name in SHARED if graphs[0].get(name) is not None}
    for number, graph in enumerate(graphs):
        own = {name: graph.get(name) for name in SHARED if graph.get(name) is not None}
        if own != shared:
            differing = next(name for name in {**own, **shared} if own.get(name) != shared.get(name))
            raise GraphError(
                f"write_graphs: graph {number} has other {differing} than the first. Write graphs with the same "
                "columns, or several files."
            )
    names = shared.pop("label_names", None) if label_names is None else label_names
    columns: dict[str, list[Any]] = {NAME: [str(graph.get("graph_name", row)) for row, graph in enumerate(graphs)]}
    for name in GRAPH_ARRAYS:
        values = [_plain(graph, name, number, names) for number, graph in enumerate(graphs)]
        if any(value is not None for value in values):
            columns[name] = values
    if any(NODE_NAMES in graph for graph in graphs):
        columns[NODE_NAMES] = [graph.get(NODE_NAMES) for graph in graphs]
    table = arrow.table({name: _typed(arrow, name, values) for name, values in columns.items()})
    table = table.replace_schema_metadata({METADATA: json.dumps(shared)})
    with replacing(path) as beside:
        parquet.write_table(table, beside, row_group_size=ROW_GROUP)


def _plain(graph: Data, name: str, number: int, label_names: Sequence[str] | None) -> Any:
    """An array of a graph as nested lists; None if it has none."""
    value = graph.get(name)
    if not isinstance(value, Tensor):
        if name in ("x", "edge_index"):
            raise GraphError(f"write_graphs: graph {number} has no {name}. Set it; edge_index may be empty.")
        return None
    cells = check_tensor(value, name, "write_graphs").detach().cpu().tolist()
    if name != "y" or label_names is None:
        return cells
    named = [*label_names, None]  # -1, a missing label, is the last one
    try:
        return [named[c] if not isinstance(c, list) else [named[task] for task in c] for c in cells]
    except IndexError as error:
        raise GraphError(
            f"write_graphs: graph {number} has a label that is not among {len(label_names)} label_names. Name every "
            "state."
        ) from error


def _typed(arrow: Any, name: str, values: list[Any]) -> Any:
    """A column; empty graphs say nothing about the type of their numbers."""
    kinds = {"x": arrow.float32(), "edge_attr": arrow.float32(), "edge_index": arrow.int64()}
    if name not in kinds:
        return arrow.array(values)
    kind = kinds[name]
    flat = name == "edge_attr" and any(value and not isinstance(value[0], list) for value in values if value)
    return arrow.array(values, arrow.list_(kind if flat else arrow.list_(kind)))


def is_graph_file(path: Path) -> bool:
    """Whether a path would be a file of many graphs."""
    return path.suffix == SUFFIX and not path.is_dir()


def count_graphs(path: Path) -> int:
    """How many graphs a file holds; none is read."""
    with _opening(path) as opened:
        return int(opened.metadata.num_rows)


def read_parquet_graphs(path: Path, first: int = 0, last: int | None = None) -> Iterator[RawGraph]:
    """The graphs of a file from row `first` up to, but not including, row `last`."""
    identity = _identity(path)
    start = 0
    for group, rows in enumerate(_group_sizes(path, identity)):
        low, high = max(first - start, 0), min(rows, (rows + start if last is None else last) - start)
        if low < high:
            cells = _row_group(path, identity, group)
            for row in range(low, high):
                yield _graph(path, cells, row, start + row)
        start += rows


def _graph(path: Path, cells: RowCells, row: int, number: int) -> RawGraph:
    where = Path(f"{path}, row {number + 1}")
    arrays = {name: cells.array(name, row, where) for name in GRAPH_ARRAYS if cells.has(name, row)}
    if "edge_index" in arrays and arrays["edge_index"].size == 0:
        arrays["edge_index"] = np.empty((2, 0), np.int64)
    lists: dict[str, Any] = dict(cells.shared)
    if cells.has(NODE_NAMES, row):
        lists[NODE_NAMES] = cells.value(NODE_NAMES, row)
    name = cells.value(NAME, row) if cells.has(NAME, row) else number
    return assemble(where, arrays, cells.names, lists, str(name))


@lru_cache(maxsize=4)
def _group_sizes(path: Path, identity: tuple[int, int]) -> tuple[int, ...]:
    with _opening(path) as opened:
        described = opened.metadata
        return tuple(described.row_group(group).num_rows for group in range(described.num_row_groups))


# Consecutive ranges often lie in the same row group, which can only be decoded as a whole.
@lru_cache(maxsize=1)
def _row_group(path: Path, identity: tuple[int, int], group: int) -> RowCells:
    with _opening(path) as opened:
        check_memory(opened.metadata.row_group(group).total_byte_size, f"{path}: reading it")
        held = list(opened.schema_arrow.names)
        missing = [name for name in ("x", "edge_index") if name not in held]
        if missing:
            raise GraphError(
                f"{path}: has no column {missing[0]!r} (it has {', '.join(held[:12]) or 'none'}). A file of many "
                "graphs has a row for each, with x and edge_index as nested lists. A table of nodes lies in a folder "
                "with its table of edges."
            )
        stored = json.loads((opened.schema_arrow.metadata or {}).get(METADATA, b"{}"))
        shared = {name: stored[name] for name in SHARED if name in stored and name != "label_names"}
        wanted = [name for name in held if name in (*GRAPH_ARRAYS, NAME, NODE_NAMES)]
        return RowCells(opened.read_row_group(group, wanted), held, shared)


class _opening:
    """A Parquet file, closed at the end; pyarrow's many kinds of errors become one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        parquet = _package("pyarrow.parquet", self.path)
        check_regular_file(self.path)
        self.file = self.path.open("rb")
        try:
            return parquet.ParquetFile(self.file)
        except BaseException as error:
            self.__exit__(type(error), error)
            raise

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any = None) -> None:
        self.file.close()
        if isinstance(error, Exception) and not isinstance(error, (AccordError, MemoryError)):
            text = str(error).splitlines()
            raise GraphError(
                f"{self.path}: cannot be read as a Parquet file ({text[0][:200] if text else type(error).__name__}). "
                "Write it again."
            ) from error


def _identity(path: Path) -> tuple[int, int]:
    """What changes with the content of a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _package(name: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise DataNotFoundError(
            f"{path}: Parquet files need the package pyarrow. Install it: pip install 'accord[tables]'."
        ) from error
