"""Reader of graphs as two tables: a folder with nodes.csv and edges.csv."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accord.datasets.readers._raw import RawGraph
from accord.errors import DataNotFoundError, GraphError

NODES_FILE, EDGES_FILE = "nodes.csv", "edges.csv"
NODE_COLUMNS = ("id", "node_id", "label")  # columns of nodes.csv that are not features
LABEL_PREFIX = "label_"  # columns with this prefix are labels, one for each task


@dataclass(frozen=True)
class Table:
    """Cells of a csv file as text, with the line number of each row."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, name: str) -> list[str]:
        """The cells of one column, stripped."""
        position = self.header.index(name)
        return [row[position].strip() for row in self.rows]

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """The named columns as finite numbers [rows, columns]."""
        if not names:
            return np.empty((len(self.rows), 0), dtype=np.float32)
        positions = [self.header.index(name) for name in names]
        cells = [[row[position] for position in positions] for row in self.rows]
        try:
            values = np.array(cells, dtype=np.str_).reshape(len(cells), len(positions)).astype(np.float32)
        except ValueError:
            values = np.full((1, 1), np.nan, dtype=np.float32)
        if not np.isfinite(values).all():
            self._raise_bad_cell(cells, names)
        return values

    def _raise_bad_cell(self, cells: list[list[str]], names: Sequence[str]) -> None:
        for row, line in zip(cells, self.lines, strict=True):
            for cell, name in zip(row, names, strict=True):
                if not _is_finite(cell):
                    what = f"holds {cell.strip()!r}, which is not a finite number" if cell.strip() else "is empty"
                    raise GraphError(
                        f"{self.path}, line {line}: column {name!r} {what}. Features are numbers: fill it in, turn "
                        "names into columns of 0 and 1, or remove the column."
                    )


def is_table_folder(path: Path) -> bool:
    """Whether a folder is one graph rather than a folder of graphs."""
    return (path / NODES_FILE).is_file() or (path / EDGES_FILE).is_file()


def read_tables(folder: Path) -> RawGraph:
    """Read nodes.csv (id, label or label_*, node_id, features) and edges.csv (source, target, attributes)."""
    nodes = read_table(folder / NODES_FILE, ["id"])
    edges = read_table(folder / EDGES_FILE, ["source", "target"])
    names = nodes.column("id")
    number = _number_nodes(nodes, names)
    label_columns = [name for name in nodes.header if name == "label" or name.startswith(LABEL_PREFIX)]
    features = [name for name in nodes.header if is_feature_column(name)]
    if not features:
        raise GraphError(f"{nodes.path}: has no feature columns besides {', '.join(nodes.header)}. Add at least one.")
    x = nodes.numbers(features)
    attributes = [name for name in edges.header if name not in ("source", "target")]
    ends = [[_find_node(edges, row, name, number) for row in range(len(edges.rows))] for name in ("source", "target")]
    labels = np.array([nodes.column(name) for name in label_columns], dtype=np.str_).T
    return RawGraph(
        path=nodes.path,
        x=x,
        edge_index=np.array(ends, dtype=np.int64).reshape(2, -1),
        labels=None if not label_columns else labels[:, 0] if len(label_columns) == 1 else labels,
        edge_attr=edges.numbers(attributes) if attributes else None,
        node_id=_whole(nodes, "node_id") if "node_id" in nodes.header else None,
        feature_names=features,
        node_names=names,
        task_names=[name.removeprefix(LABEL_PREFIX) for name in label_columns] if len(label_columns) > 1 else None,
        lines=nodes.lines,
    )


def is_feature_column(name: str) -> bool:
    """Whether a column of nodes.csv is a feature."""
    return name not in NODE_COLUMNS and not name.startswith(LABEL_PREFIX)


def read_table(path: Path, required: Sequence[str]) -> Table:
    """Read a csv file with a header line; blank lines are skipped."""
    if not path.is_file():
        hint = " For a graph without edges, write the line `source,target` only." if path.name == EDGES_FILE else ""
        raise DataNotFoundError(
            f"{path.parent}: has no {path.name}.{hint} A graph is two files, {NODES_FILE} and {EDGES_FILE}."
        )
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            read = [(row, reader.line_num) for row in reader if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise GraphError(f"{path}: cannot be read as a csv file in UTF-8 ({error}). Save it in UTF-8.") from error
    if not read:
        raise GraphError(f"{path}: is empty. Its first line must name the columns, {','.join(required)} among them.")
    header = [name.strip() for name in read[0][0]]
    _check_header(path, header, required)
    for row, line in read[1:]:
        if len(row) != len(header):
            raise GraphError(
                f"{path}, line {line}: has {len(row)} cells, but the header names {len(header)} columns. Complete the "
                "line; text with commas in it needs quotes."
            )
    return Table(path, header, [row for row, _ in read[1:]], [line for _, line in read[1:]])


def _check_header(path: Path, header: list[str], required: Sequence[str]) -> None:
    missing = [name for name in required if name not in header]
    if missing:
        other = next((separator for separator in (";", "\t", "|") if separator in header[0]), None)
        hint = f"Columns seem to be separated by {other!r}: use commas." if other else "Add or rename a column."
        raise GraphError(f"{path}, line 1: there is no column {', '.join(missing)} in {', '.join(header)}. {hint}")
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise GraphError(f"{path}, line 1: the column name {twice[0]!r} occurs twice. Rename one of the two.")


def _number_nodes(nodes: Table, names: list[str]) -> dict[str, int]:
    """Row of each node in the table by its id; ids are unique."""
    number: dict[str, int] = {}
    for row, name in enumerate(names):
        first = number.setdefault(name, row)
        if first != row:
            raise GraphError(
                f"{nodes.path}, line {nodes.lines[row]}: the id {name!r} is already used in line "
                f"{nodes.lines[first]}. Give every node an id of its own."
            )
    return number


def _find_node(edges: Table, row: int, column: str, number: dict[str, int]) -> int:
    name = edges.rows[row][edges.header.index(column)].strip()
    if name not in number:
        raise GraphError(
            f"{edges.path}, line {edges.lines[row]}: {column} {name!r} is not an id in {NODES_FILE}. Add the node "
            "or remove the edge."
        )
    return number[name]


def _whole(table: Table, name: str) -> np.ndarray:
    try:
        return np.array([int(cell) for cell in table.column(name)], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise GraphError(f"{table.path}: column {name!r} must hold whole numbers ({error}).") from error


def _is_finite(cell: str) -> bool:
    try:
        return bool(np.isfinite(np.float32(cell)))
    except ValueError:
        return False
