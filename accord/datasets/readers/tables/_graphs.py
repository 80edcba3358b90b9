"""Graphs from a table of nodes and a table of edges: one graph, or several told apart by a column."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accord.datasets.readers._findings import Findings, Unreadable
from accord.datasets.readers._raw import RawGraph, check_label_text
from accord.datasets.readers.tables._cells import read_column
from accord.datasets.readers.tables._encoding import ColumnSet, Encoded, known_kind
from accord.datasets.readers.tables._items import read_items, read_vectors
from accord.datasets.readers.tables._mapping import TableMapping
from accord.datasets.readers.tables._roles import LABEL_PREFIX, SPLITS, EdgeRoles, NodeRoles, edge_roles, node_roles
from accord.datasets.readers.tables._table import SUFFIXES, Table, find_table, read_table
from accord.errors import DataNotFoundError, GraphError
from accord.graphs import MASKS, Columns

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,100}")  # int() also reads 1_0 and digits of other scripts


@dataclass(frozen=True, eq=False)
class TableGraphs:
    """What two tables hold, before text is encoded."""

    table: Table
    roles: NodeRoles
    nodes: ColumnSet
    edges: ColumnSet
    ends: np.ndarray  # [2, edges]: rows of the node table
    names: list[str]
    labels: np.ndarray | None
    node_id: np.ndarray | None
    masks: dict[str, np.ndarray]
    graph: list[str] | None  # of each node
    single: str | None = None  # name of the graph, if the file does not tell

    def graphs(self, nodes: Encoded, edges: Encoded) -> list[RawGraph]:
        """The graphs, with encoded features and edge attributes."""
        whole = np.arange(len(self.names))
        if self.graph is None:
            return [self._graph(self.single, whole, np.arange(self.ends.shape[1]), nodes, edges)]
        names = sorted(set(self.graph))
        number = {name: place for place, name in enumerate(names)}
        of_node = np.array([number[name] for name in self.graph], dtype=np.int64)
        parts = zip(names, _groups(of_node, len(names)), _groups(of_node[self.ends[0]], len(names)), strict=True)
        return [self._graph(name, rows, columns, nodes, edges) for name, rows, columns in parts]

    def _graph(
        self, name: str | None, rows: np.ndarray, columns: np.ndarray, nodes: Encoded, edges: Encoded
    ) -> RawGraph:
        number = np.zeros(len(self.names), np.int64)
        number[rows] = np.arange(len(rows))
        labels = self.roles.labels
        whole = len(rows) == len(self.names)
        return RawGraph(
            path=self.table.path,
            x=nodes.values if whole else nodes.values[rows],
            edge_index=number[self.ends[:, columns]],
            labels=None if self.labels is None else self.labels[rows],
            edge_attr=edges.values[columns] if edges.names else None,
            node_id=None if self.node_id is None else self.node_id[rows],
            feature_names=nodes.names,
            feature_kinds=nodes.kinds,
            edge_names=edges.names if edges.names else None,
            edge_kinds=edges.kinds if edges.names else None,
            node_names=[self.names[row] for row in rows.tolist()],
            task_names=[name.removeprefix(LABEL_PREFIX) for name in labels] if len(labels) > 1 else None,
            lines=[self.table.lines[row] for row in rows.tolist()],
            unit=self.table.unit,
            name=name,
            masks={key: mask[rows] for key, mask in self.masks.items()},
        )


def _groups(owner: np.ndarray, count: int) -> list[np.ndarray]:
    """Places of each owner 0 to count - 1, ascending."""
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.searchsorted(owner[order], np.arange(1, count)))


def is_table_folder(path: Path, mapping: TableMapping | None = None) -> bool:
    """Whether a folder is one graph (or one pair of tables) rather than a folder of graphs."""
    named = (None, None) if mapping is None else (mapping.nodes.file, mapping.edges.file)
    if any(name is not None for name in named):
        return any(name is not None and (path / name).exists() for name in named)
    return any((path / f"{stem}{suffix}").exists() for stem in ("nodes", "edges") for suffix in SUFFIXES)


def read_table_folder(
    folder: Path, mapping: TableMapping, known: tuple[Columns | None, Columns | None], findings: Findings
) -> TableGraphs:
    """Read the tables of a folder.

    Args:
        folder: holds the table of nodes and the table of edges.
        mapping: files and columns that are named; the rest is guessed.
        known: columns of nodes and edges that a model was trained on.
        findings: get problems, and how each column is read.
    """
    tables: list[Table | None] = []
    for stem, named in (("nodes", mapping.nodes.file), ("edges", mapping.edges.file)):
        path = find_table(folder, stem, named)
        try:
            if path is None or not path.exists():
                raise _no_table(folder, stem, path)
            tables.append(read_table(path, findings))
        except (GraphError, DataNotFoundError) as error:
            findings.error(error)
            tables.append(None)
        except Unreadable:
            tables.append(None)
    nodes, edges = tables
    if nodes is None or edges is None:
        raise Unreadable
    return read_graphs_of(nodes, edges, mapping, known, findings, folder)


def read_graphs_of(
    nodes: Table,
    edges: Table,
    mapping: TableMapping,
    known: tuple[Columns | None, Columns | None],
    findings: Findings,
    folder: Path | None = None,
    name: str | None = None,
) -> TableGraphs:
    """What two tables hold; `folder` has the file with further features, if the mapping names one."""
    known_nodes = set() if known[0] is None else {*known[0].names, *known[0].categorical()}
    known_edges = set() if known[1] is None else {*known[1].names, *known[1].categorical()}
    roles = node_roles(nodes, mapping.nodes, known_nodes, findings)
    ends = edge_roles(edges, mapping.edges, roles.graph, known_edges, findings)
    names = nodes.text(roles.id)
    graph = None if roles.graph is None else nodes.text(roles.graph)
    number = _number_nodes(nodes, names, graph if ends.graph is not None else None, findings)
    node_set = _column_set(nodes, roles.features, mapping.nodes.categories, mapping.nodes.missing, known[0], findings)
    if mapping.features.file is not None and folder is not None:
        node_set = _with_lists(node_set, folder, mapping, names, findings)
    if not roles.features and mapping.features.file is None:
        findings.problem(f"{nodes.path}: has no feature columns besides {', '.join(nodes.header)}. Add at least one.")
    labels = _labels(nodes, roles.labels, mapping.nodes.missing, findings)
    node_id = None if roles.node_id is None else _whole(nodes, roles.node_id, findings)
    masks = {name: _whole(nodes, name, findings) for name in roles.masks} | _splits(nodes, roles, findings)
    index, kept = _find_ends(edges, ends, number, graph, findings)
    edge_set = _column_set(edges, ends.attributes, mapping.edges.categories, mapping.edges.missing, known[1], findings)
    if len(kept) < len(edges):
        edge_set = ColumnSet(edge_set.path, len(kept), [c.rows(kept) for c in edge_set.columns], edge_set.forced)
    return TableGraphs(nodes, roles, node_set, edge_set, index, names, labels, node_id, masks, graph, name)


def _no_table(folder: Path, stem: str, path: Path | None) -> DataNotFoundError:
    name = f"{stem}.csv" if path is None else path.name
    hint = " For a graph without edges, write the line `source,target` only." if stem == "edges" else ""
    return DataNotFoundError(
        f"{folder}: has no {name}.{hint} A graph is two tables, nodes.csv and edges.csv; a mapping file (accord.toml) "
        "names others."
    )


def _column_set(
    table: Table,
    names: Sequence[str],
    categories: Sequence[str],
    missing: Sequence[str],
    known: Columns | None,
    findings: Findings,
) -> ColumnSet:
    wanted = [True if name in categories else known_kind(name, known) for name in names]
    gaps = frozenset(missing)
    columns = [read_column(table, name, gaps, text, findings) for name, text in zip(names, wanted, strict=True)]
    return ColumnSet(table.path, len(table), columns, frozenset(categories))


def _with_lists(
    found: ColumnSet, folder: Path, mapping: TableMapping, names: list[str], findings: Findings
) -> ColumnSet:
    """The columns with those of the file of lists."""
    assert mapping.features.file is not None
    path = folder / mapping.features.file
    number = {name: row for row, name in enumerate(names)}
    if len(number) < len(names):
        raise Unreadable  # repeated ids have been reported
    if mapping.features.form == "items":
        items = {mapping.features.name: read_items(path, number, findings)}
        return ColumnSet(found.path, found.rows, found.columns, found.forced, items)
    vectors = read_vectors(path, mapping.features, number, findings)
    return ColumnSet(found.path, found.rows, [*found.columns, *vectors], found.forced)


def _labels(table: Table, columns: Sequence[str], missing: Sequence[str], findings: Findings) -> np.ndarray | None:
    """The text of the label columns [nodes], or [nodes, tasks] if there are several."""
    if not columns:
        return None
    cells = []
    for name in columns:
        column = ["" if text in missing else text for text in table.text(name)]
        for text, row in {text: row for row, text in enumerate(column)}.items():
            try:
                check_label_text(text, table.place(row))
            except GraphError as error:
                findings.error(error)
                column = ["" if own == text else own for own in column]
        cells.append(column)
    labels = np.array(cells, dtype=np.str_).T
    return labels[:, 0] if len(columns) == 1 else labels


def _splits(table: Table, roles: NodeRoles, findings: Findings) -> dict[str, np.ndarray]:
    """Masks by the column that names splits."""
    if roles.split is None:
        return {}
    found = []
    for row, text in enumerate(table.text(roles.split)):
        if text.lower() not in SPLITS:
            findings.problem(
                f"{table.place(row)}: column {roles.split!r} holds {text[:80]!r}, but train, val or test is needed. "
                "Correct it, or leave it empty."
            )
        found.append(SPLITS.get(text.lower(), ""))
    splits = np.array(found, dtype=np.str_)
    return {mask: (splits == mask.removesuffix("_mask")).astype(np.int64) for mask in MASKS}


def _number_nodes(
    table: Table, names: list[str], graph: list[str] | None, findings: Findings
) -> dict[tuple[str, str], int]:
    """Row of each node by graph and id; ids are unique within a graph."""
    number: dict[tuple[str, str], int] = {}
    for row, name in enumerate(names):
        if not name:
            findings.problem(f"{table.place(row)}: the id is empty. Give every node an id of its own.")
        first = number.setdefault(("" if graph is None else graph[row], name), row)
        if first != row and name:
            findings.problem(
                f"{table.place(row)}: the id {name[:80]!r} is already used in {table.unit} {table.lines[first]}. Give "
                "every node an id of its own."
            )
    return number


def _find_ends(
    table: Table, roles: EdgeRoles, number: dict[tuple[str, str], int], graph: list[str] | None, findings: Findings
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the nodes that edges join, and the edges whose ends were found."""
    graphs = [""] * len(table) if roles.graph is None else table.text(roles.graph)
    ends = np.full((2, len(table)), -1, np.int64)
    for side, column in enumerate((roles.source, roles.target)):
        for row, (owner, name) in enumerate(zip(graphs, table.text(column), strict=True)):
            found = number.get((owner, name))
            if found is None:
                inside = f" of graph {owner[:80]!r}" if roles.graph is not None else ""
                findings.problem(
                    f"{table.place(row)}: {column} {name[:80]!r} is not an id in the table of nodes{inside}. Add the "
                    "node or remove the edge."
                )
            else:
                ends[side, row] = found
    if graph is not None and roles.graph is None:
        for row in range(len(table)):
            source, target = ends[:, row].tolist()
            if min(source, target) >= 0 and graph[source] != graph[target]:
                findings.problem(
                    f"{table.place(row)}: joins graph {graph[source][:80]!r} and graph {graph[target][:80]!r}. Remove "
                    "the edge, or put both nodes into one graph."
                )
    kept = np.flatnonzero((ends >= 0).all(0))
    return ends[:, kept], kept


def _whole(table: Table, name: str, findings: Findings) -> np.ndarray:
    values = np.zeros(len(table), np.int64)
    for row, cell in enumerate(table.text(name)):
        if WHOLE_NUMBER.fullmatch(cell) and -(2**63) <= int(cell) < 2**63:
            values[row] = int(cell)
        else:
            findings.problem(
                f"{table.place(row)}: column {name!r} holds {cell[:80]!r}, but must hold whole numbers of int64. "
                "Correct it."
            )
    return values
