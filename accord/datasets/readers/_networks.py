"""NetworkX graphs and GraphML files: attributes of nodes and edges are read like columns of tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from accord.datasets._sources import check_memory, check_regular_file
from accord.datasets.readers._findings import Findings
from accord.datasets.readers.tables import Table, TableGraphs, TableMapping, read_graphs_of
from accord.errors import DataNotFoundError, GraphError
from accord.graphs import Columns

ID, SOURCE, TARGET = "id", "source", "target"
DECLARATIONS = (b"<!doctype", b"<!entity")  # may stand for text of any size, or name other files
CHUNK = 2**20  # bytes searched at a time
GROWTH = 20  # elements and attributes take about so many times the bytes of their text


def read_graphml(
    path: Path, mapping: TableMapping, known: tuple[Columns | None, Columns | None], findings: Findings
) -> TableGraphs:
    """Read a .graphml file."""
    check_memory(GROWTH * check_regular_file(path), f"{path}: reading it")
    _refuse_declarations(path)
    try:
        networkx: Any = import_module("networkx")
    except ImportError as error:
        raise DataNotFoundError(
            f"{path}: reading GraphML needs the package networkx. Install it: pip install 'accord[tables]'."
        ) from error
    try:
        graph = networkx.read_graphml(path)
    except Exception as error:  # the parser and its conversions raise many kinds of error on damaged files
        text = str(error).splitlines()
        raise GraphError(
            f"{path}: cannot be read as GraphML ({text[0][:200] if text else type(error).__name__}). Write it again, "
            "for example with networkx.write_graphml."
        ) from error
    return tables_of(graph, path, mapping, known, findings, path.name)


def tables_of(
    graph: Any,
    path: Path,
    mapping: TableMapping,
    known: tuple[Columns | None, Columns | None],
    findings: Findings,
    name: str | None = None,
) -> TableGraphs:
    """A NetworkX graph as tables of nodes and edges.

    Args:
        graph: the NetworkX graph.
        path: where it is from, for messages.
        mapping: which attributes hold what.
        known: columns that a model was trained on.
        findings: get problems, and how each attribute is read.
        name: of the graph.
    """
    keys = list(graph.nodes)
    names = [str(key) for key in keys]
    nodes = _table(path, "node", {ID: names}, [graph.nodes[key] for key in keys])
    number = {key: name for key, name in zip(keys, names, strict=True)}
    ends = list(graph.edges(data=True))
    sources, targets = ([number[end[side]] for end in ends] for side in (0, 1))
    edges = _table(path, "edge", {SOURCE: sources, TARGET: targets}, [end[2] for end in ends])
    return read_graphs_of(nodes, edges, mapping, known, findings, None, name)


def _table(path: Path, unit: str, first: dict[str, list[str]], attributes: Sequence[Mapping[Any, Any]]) -> Table:
    """A table with the given columns, and one for each attribute that occurs."""
    columns: dict[str, list[str]] = dict(first)
    rows = [dict(_flat(own, first)) for own in attributes]
    for name in dict.fromkeys(name for row in rows for name in row):
        columns[name] = [row.get(name, "") for row in rows]
    return Table(path, dict(columns), range(len(rows)), unit)


def _flat(attributes: Mapping[Any, Any], taken: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Attributes as text; a list of numbers becomes several. Those with the name of an own column are left out."""
    for key, value in attributes.items():
        name = str(key).strip()
        if not name or name in taken:
            continue
        if isinstance(value, (list, tuple, np.ndarray)):
            yield from ((f"{name} {place}", _text(part)) for place, part in enumerate(value))
        else:
            yield name, _text(value)


def _text(value: Any) -> str:
    if value is None or (isinstance(value, (float, np.floating)) and math.isnan(value)):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    return str(value).replace("\0", "")


def _refuse_declarations(path: Path) -> None:
    """Refuse a document type: GraphML needs none, and it may expand to text of any size."""
    before = b""
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            text = (before + piece.replace(b"\0", b"")).lower()  # UTF-16 has a NUL in each letter
            if any(word in text for word in DECLARATIONS):
                raise GraphError(
                    f"{path}: declares a document type or entities, which are not read. Remove <!DOCTYPE ..>."
                )
            before = text[-len(max(DECLARATIONS, key=len)) :]
