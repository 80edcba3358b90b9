"""Reader of graphs as two tables: a folder with nodes.csv and edges.csv."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from accord.datasets._sources import check_text_file
from accord.datasets.readers._raw import NOT_IN_NUMBERS, RawGraph, check_label_text, first_repeated, parse_number
from accord.errors import DataNotFoundError, GraphError
from accord.graphs import MASKS

NODES_FILE, EDGES_FILE = "nodes.csv", "edges.csv"
NODE_COLUMNS = ("id", "node_id", "label", *MASKS)  # columns of nodes.csv that are not features
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,100}")  # int() also reads 1_0 and digits of other scripts
MAX_FEATURE = float(np.finfo(np.float32).max)
LABEL_PREFIX = "label_"  # columns with this prefix are labels, one for each task


@dataclass(frozen=True)
class Table:
    """Cells of a csv file as text, with the line number of each row."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    lines: list[int]
    position: dict[str, int] = field(init=False)  # of each column

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", {name: place for place, name in enumerate(self.header)})

    def column(self, name: str) -> list[str]:
        """The cells of one column, stripped."""
        position = self.position[name]
        return [row[position].strip() for row in self.rows]

    def numbers(self, names: Sequence[str]) -> np.ndarray:
        """The named columns as finite float32 numbers [rows, columns]."""
        positions = [self.position[name] for name in names]
        cells = [[row[position] for position in positions] for row in self.rows]
        try:
            read = np.fromiter(map(float, chain.from_iterable(cells)), np.float64, len(cells) * len(names))
        except ValueError:
            read = np.full(1, np.nan)
        with np.errstate(over="ignore"):
            values = read.astype(np.float32)
        if not np.isfinite(values).all() or any(NOT_IN_NUMBERS.search("".join(row)) for row in cells):
            self._raise_bad_cell(cells, names)
        return values.reshape(len(cells), len(names))

    def _raise_bad_cell(self, cells: list[list[str]], names: Sequence[str]) -> None:
        for row, line in zip(cells, self.lines, strict=True):
            for cell, name in zip(row, names, strict=True):
                number = parse_number(cell)
                if number is None or not np.isfinite(number):
                    what = f"holds {cell.strip()!r}, which is not a finite number" if cell.strip() else "is empty"
                elif abs(number) > MAX_FEATURE:
                    what = f"holds {cell.strip()!r}, which is too large for float32"
                else:
                    what = None
                if what is not None:
                    raise GraphError(
                        f"{self.path}, line {line}: column {name!r} {what}. Features are numbers: fill it in, turn "
                        "names into columns of 0 and 1, or remove the column."
                    )


def is_table_folder(path: Path) -> bool:
    """Whether a folder is one graph rather than a folder of graphs."""
    return (path / NODES_FILE).exists() or (path / EDGES_FILE).exists()


def read_tables(folder: Path) -> RawGraph:
    """Read nodes.csv (id, label or label_*, node_id, masks, features) and edges.csv (source, target, attributes)."""
    nodes = read_table(folder / NODES_FILE, ["id"])
    edges = read_table(folder / EDGES_FILE, ["source", "target"])
    names = nodes.column("id")
    number = _number_nodes(nodes, names)
    label_columns = [name for name in nodes.header if name == "label" or name.startswith(LABEL_PREFIX)]
    features = [name for name in nodes.header if is_feature_column(name)]
    if not features:
        raise GraphError(f"{nodes.path}: has no feature columns besides {', '.join(nodes.header)}. Add at least one.")
    x = nodes.numbers(features)
    labels = _labels(nodes, label_columns)
    attributes = [name for name in edges.header if name not in ("source", "target")]
    ends = [_find_nodes(edges, name, number) for name in ("source", "target")]
    return RawGraph(
        path=nodes.path,
        x=x,
        edge_index=np.array(ends, dtype=np.int64).reshape(2, -1),
        labels=labels,
        edge_attr=edges.numbers(attributes) if attributes else None,
        node_id=_whole(nodes, "node_id") if "node_id" in nodes.header else None,
        feature_names=features,
        node_names=names,
        task_names=[name.removeprefix(LABEL_PREFIX) for name in label_columns] if len(label_columns) > 1 else None,
        lines=nodes.lines,
        masks={name: _whole(nodes, name) for name in MASKS if name in nodes.header},
    )


def is_feature_column(name: str) -> bool:
    """Whether a column of nodes.csv is a feature."""
    return name not in NODE_COLUMNS and not name.startswith(LABEL_PREFIX)


def read_table(path: Path, required: Sequence[str]) -> Table:
    """Read a csv file with a header line; blank lines are skipped."""
    if not path.exists():
        hint = " For a graph without edges, write the line `source,target` only." if path.name == EDGES_FILE else ""
        raise DataNotFoundError(
            f"{path.parent}: has no {path.name}.{hint} A graph is two files, {NODES_FILE} and {EDGES_FILE}."
        )
    check_text_file(path)
    read: list[tuple[list[str], int]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(_without_nul(path, file), strict=True)
            read.extend((row, reader.line_num) for row in reader if row)
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}: is not text in UTF-8 ({error}). Save it again in UTF-8.") from error
    except csv.Error as error:
        line = read[-1][1] + 1 if read else 1
        raise GraphError(
            f"{path}, line {line}: this line, or one after it, cannot be read as csv ({error}). Close every quote, and "
            "write a quote inside quotes twice."
        ) from error
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
    if "" in header:
        raise GraphError(
            f"{path}, line 1: column {header.index('') + 1} has no name. Name it, or remove it: many programs write an "
            "unnamed column of row numbers."
        )
    twice = first_repeated(header)
    if twice is not None:
        raise GraphError(f"{path}, line 1: the column name {twice!r} occurs twice. Rename one of the two.")


def _without_nul(path: Path, lines: Iterable[str]) -> Iterator[str]:
    """The lines of a file; numpy drops a NUL at the end of text, so names that differ would become equal."""
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            raise GraphError(f"{path}, line {number}: contains a NUL character. Remove it, or save the file as text.")
        yield line


def _labels(nodes: Table, columns: Sequence[str]) -> np.ndarray | None:
    """The text of the label columns [nodes], or [nodes, tasks] if there are several."""
    if not columns:
        return None
    cells = [nodes.column(name) for name in columns]
    for column in cells:
        for text, line in dict(zip(column, nodes.lines, strict=True)).items():
            check_label_text(text, f"{nodes.path}, line {line}")
    labels = np.array(cells, dtype=np.str_).T
    return labels[:, 0] if len(columns) == 1 else labels


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


def _find_nodes(edges: Table, column: str, number: dict[str, int]) -> list[int]:
    """Rows of the nodes that a column of edges.csv names."""
    names = edges.column(column)
    for name, line in zip(names, edges.lines, strict=True):
        if name not in number:
            raise GraphError(
                f"{edges.path}, line {line}: {column} {name!r} is not an id in {NODES_FILE}. Add the node or remove "
                "the edge."
            )
    return [number[name] for name in names]


def _whole(table: Table, name: str) -> np.ndarray:
    cells = table.column(name)
    for cell, line in zip(cells, table.lines, strict=True):
        if not WHOLE_NUMBER.fullmatch(cell) or not -(2**63) <= int(cell) < 2**63:
            raise GraphError(
                f"{table.path}, line {line}: column {name!r} holds {cell!r}, but must hold whole numbers of int64. "
                "Correct it."
            )
    return np.array([int(cell) for cell in cells], dtype=np.int64)
