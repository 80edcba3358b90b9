"""What the columns of node and edge tables are for: as a mapping names them, or guessed by usual names."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from accord.datasets.readers._findings import Findings
from accord.datasets.readers.tables._mapping import EdgeTable, NodeTable
from accord.datasets.readers.tables._table import Table
from accord.errors import GraphError
from accord.graphs import MASKS

LABEL, LABEL_PREFIX = "label", "label_"  # columns with this prefix are labels, one for each task
NODE_ID = "node_id"  # identifies a node across graphs, by a whole number
ID_NAMES = ("id", "node", NODE_ID, "name", "key")
LABEL_NAMES = (LABEL, "labels", "class", "target")
GRAPH_NAMES = ("graph", "graph_id")
SPLIT_NAMES = ("split",)
END_NAMES = (
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("id_1", "id_2"),
    ("id1", "id2"),
    ("node_1", "node_2"),
    ("node1", "node2"),
    ("u", "v"),
)
SPLITS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val"}
SPLITS |= {"test": "test", "testing": "test", "": ""}


@dataclass(frozen=True)
class NodeRoles:
    """Columns of the node table by what they are for."""

    id: str
    labels: tuple[str, ...]
    split: str | None
    graph: str | None
    node_id: str | None
    masks: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True)
class EdgeRoles:
    """Columns of the edge table by what they are for."""

    source: str
    target: str
    graph: str | None
    attributes: tuple[str, ...]


def is_feature_column(name: str) -> bool:
    """Whether a column of that name in nodes.csv is a feature."""
    return name not in ("id", NODE_ID, LABEL, *GRAPH_NAMES, *SPLIT_NAMES, *MASKS) and not name.startswith(LABEL_PREFIX)


def node_roles(table: Table, mapping: NodeTable, known: Collection[str], findings: Findings) -> NodeRoles:
    """The roles of a node table's columns.

    Args:
        table: the table.
        mapping: roles that are given.
        known: columns that a model reads as features; they are not guessed to be anything else.
        findings: get what was guessed, and columns that are not there.
    """
    header = table.header
    free = [name for name in header if name not in known]
    found = mapping.id or _guess(ID_NAMES, free)
    if found is None or found not in header:
        _refuse(table, [found or "id"])
    labels = mapping.label
    if labels is None:
        labels = tuple(name for name in free if name == LABEL or name.startswith(LABEL_PREFIX))
        guess = _guess(LABEL_NAMES, free)
        labels = labels or (() if guess in (None, found) else (str(guess),))
    elif not set(labels) & set(header):
        labels = ()  # new graphs have no labels
    else:
        _check_names(table, labels, findings)
        labels = tuple(name for name in labels if name in header)
    split = mapping.split or _guess(SPLIT_NAMES, free)
    if split in header and mapping.split is None and not {text.lower() for text in table.text(split)} <= set(SPLITS):
        split = None
    graph = mapping.graph or _guess(GRAPH_NAMES, free)
    node_id = NODE_ID if NODE_ID in free and found != NODE_ID else None
    special = {found, *labels, split, graph, node_id, *MASKS, *mapping.ignore}
    features = tuple(name for name in header if name not in special)
    if mapping.features is not None:
        _check_names(table, mapping.features, findings)
        features = tuple(name for name in header if name in mapping.features)
    used = {*features, *labels, found, split, graph, node_id, *MASKS}
    for name in header:
        if name not in used:
            findings.use(table.path, name, "left out: the mapping file says so")
    roles = NodeRoles(
        str(found),
        labels,
        split if split in header else None,
        graph if graph in header else None,
        node_id,
        tuple(name for name in MASKS if name in header),
        features,
    )
    _note_nodes(table, roles, mapping, findings)
    return roles


def edge_roles(
    table: Table, mapping: EdgeTable, graph: str | None, known: Collection[str], findings: Findings
) -> EdgeRoles:
    """The roles of an edge table's columns; `graph` is the name of the node table's graph column."""
    header = table.header
    lower = {name.lower(): name for name in header if name not in known}
    source, target = mapping.source, mapping.target
    if source is None and target is None:
        pairs = [(lower[a], lower[b]) for a, b in END_NAMES if a in lower and b in lower]
        source, target = pairs[0] if pairs else ("source", "target")
    source, target = source or "source", target or "target"
    missing = [name for name in (source, target) if name not in header]
    if missing:
        _refuse(table, missing)
    own_graph = mapping.graph or (graph if graph in header else None)
    if own_graph is not None and own_graph not in header:
        _refuse(table, [own_graph])
    special = {source, target, own_graph, *mapping.ignore}
    attributes = tuple(name for name in header if name not in special)
    if mapping.attributes is not None:
        _check_names(table, mapping.attributes, findings)
        attributes = tuple(name for name in header if name in mapping.attributes)
    guessed = "" if mapping.source or (source, target) == END_NAMES[0] else " (guessed)"
    findings.use(table.path, source, f"source of an edge{guessed}")
    findings.use(table.path, target, f"target of an edge{guessed}")
    if own_graph is not None:
        findings.use(table.path, own_graph, "graph of an edge")
    used = {*attributes, source, target, own_graph}
    for name in header:
        if name not in used:
            findings.use(table.path, name, "left out: the mapping file says so")
    return EdgeRoles(source, target, own_graph, attributes)


def settle(mapping: NodeTable, roles: NodeRoles) -> NodeTable:
    """The mapping with what was guessed from one table, so that all tables of a data set are read alike."""
    return replace(mapping, id=roles.id, label=roles.labels or mapping.label)


def _guess(names: Sequence[str], header: Sequence[str]) -> str | None:
    """The first of these names that is a column, whatever its case; exact spelling comes first."""
    lower = {name.lower(): name for name in reversed(header)}
    return next((name for name in names if name in header), next((lower[n] for n in names if n in lower), None))


def _check_names(table: Table, names: Sequence[str], findings: Findings) -> None:
    missing = [name for name in names if name not in table.header]
    if missing:
        findings.problem(
            f"{table.path}: there is no column {', '.join(missing)}, which the mapping names. It has "
            f"{', '.join(table.header[:12])}."
        )


def _refuse(table: Table, missing: Sequence[str]) -> None:
    header = table.header
    first = header[0] if header else ""
    other = next((separator for separator in (";", "\t", "|") if separator in first), None)
    hint = (
        f"Columns seem to be separated by {other!r}: use commas."
        if other
        else "Add or rename a column, or name it in a mapping file (accord.toml)."
    )
    place = f"{table.path}, line 1" if table.unit == "line" else str(table.path)
    raise GraphError(f"{place}: there is no column {', '.join(missing)} in {', '.join(header[:12])}. {hint}")


def _note_nodes(table: Table, roles: NodeRoles, mapping: NodeTable, findings: Findings) -> None:
    for column, given, usual, use in (
        (roles.id, mapping.id, "id", "name of a node"),
        *((name, mapping.label, name if name.startswith(LABEL) else LABEL, "label") for name in roles.labels),
        (roles.split, mapping.split, None, "split: train, val or test"),
        (roles.graph, mapping.graph, None, "graph of a node"),
        (roles.node_id, None, NODE_ID, "number of a node across graphs"),
        *((name, None, name, "mask") for name in roles.masks),
    ):
        if column is not None:
            findings.use(table.path, column, use + ("" if given or column == usual else " (guessed)"))
