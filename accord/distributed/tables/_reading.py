"""Reading a graph that no process could hold: each reads some rows, and sends them to the owners of their nodes."""

from collections.abc import Collection
from pathlib import Path

import torch
from torch import Tensor

from accord.datasets.readers.tables import is_feature_column
from accord.distributed._graph import PartGraph
from accord.distributed._halo import Halo
from accord.distributed._part import Part
from accord.distributed._partition import hash_part
from accord.distributed._together import Group, gather, place, together, total
from accord.distributed.tables._files import PartTable, Rows, open_table
from accord.distributed.tables._routing import deliver, open_directory, route
from accord.errors import GraphError
from accord.graphs._topology import first_columns

ID, LABEL, PART = "id", "label", "part"  # of nodes; the last says where a node belongs
SOURCE, TARGET = "source", "target"
WHOLE_OF_NODES = {ID: None, LABEL: -1, PART: None}  # columns of whole numbers, and what a missing one is read as
WHOLE_OF_EDGES = {SOURCE: None, TARGET: None}
NODE_FOLDER, EDGE_FOLDER = "nodes", "edges"


def read_parts(folder: str | Path, columns: Collection[str] | None = None, group: Group = None) -> PartGraph:
    """Read this process's part of a graph in a folder with nodes/*.parquet and edges/*.parquet.

    Nodes have a column `id` (any whole numbers, each once) and feature columns, numbers or lists of numbers; `label`
    (a state, -1 or nothing if missing; text is left out) and `part` are optional. Edges have `source` and `target`, ids
    of nodes, and optionally columns of numbers. Whole numbers may be stored as floats that hold them exactly.
    Directions, repeats and self-loops are treated as `accord.graphs.topology` does: the rows of all files, in the order
    of their names, count as one edge index.

    A node belongs to the process that its `part` column names, or else to one by the hash of its id. With more or fewer
    parts than processes, parts are divided evenly. All processes call this together; each reads about an equal share of
    the row groups, and holds them only until they are sent.

    Args:
        folder: the folder.
        columns: names of feature columns and edge columns to read, for example those of a model; None reads all. A
            column of lists is always read.
        group: the processes; None for all. Without a process group, this process reads everything.
    """
    rank, ranks = place(group)
    with together(group):
        nodes, edges = (open_table(Path(folder) / name, ranks) for name in (NODE_FOLDER, EDGE_FOLDER))
        own, features = _read_nodes(nodes, columns, rank)
    ids, owner = own.columns[ID], _owners(own, ranks, group)
    directory = open_directory(ids, torch.stack([own.number, owner], 1), group)
    with together(group):
        twice = directory.repeated()
        if twice is not None:
            raise GraphError(f"{nodes.folder}: the id {twice} occurs twice. Give every node an id of its own.")
        values = _features(own, features, nodes)
    x, names = _agree(*values, nodes, group)
    y = own.columns[LABEL] if LABEL in own.columns else torch.empty(len(ids), 0, dtype=torch.long)
    number, ids, x, y = deliver([own.number, ids, x, y], owner, group)
    order = number.argsort()
    number, ids, x, y = (values[order] for values in (number, ids, x, y))
    with together(group):
        rows, attributes = _read_edges(edges, columns, rank)
        values = _features(rows, attributes, edges)
    attr, edge_names = _agree(*values, edges, group)
    given = torch.stack([rows.columns[name] for name in (SOURCE, TARGET)], 1)
    facts = directory.find(given.flatten()).view(-1, 2, 2)  # [columns, ends, (number, owner)]
    with together(group):
        unknown = (facts[..., 0] < 0).nonzero()
        if len(unknown):
            row, end = unknown[0].tolist()
            raise GraphError(
                f"{edges.folder}: row {int(rows.number[row])}: {(SOURCE, TARGET)[end]} {int(given[row, end])} is not "
                f"an id in {nodes.folder}. Add the node or remove the edge."
            )
    between = facts[:, 0, 1] != facts[:, 1, 1]  # these go to both owners
    twice_sent = torch.cat([torch.arange(len(facts)), between.nonzero().flatten()])
    receiver = torch.cat([facts[:, 0, 1], facts[between, 1, 1]])
    column, facts, attr = deliver([rows.number[twice_sent], facts[twice_sent], attr[twice_sent]], receiver, group)
    order = column.argsort()
    column, facts, attr = column[order], facts[order], attr[order]
    part, edge_index = _part(number, facts, column, edges, nodes.num_rows, group)
    return PartGraph(
        part,
        x,
        ids,
        edge_index,
        attr if attr.shape[1] else None,
        y if y.dim() == 1 else None,
        names,
        edge_names,
    )


def is_node_feature(name: str) -> bool:
    """Whether a column of that name in a table of nodes is a feature."""
    return is_feature_column(name) and name != PART


def is_edge_column(name: str) -> bool:
    """Whether a column of that name in a table of edges is one of numbers about the edge."""
    return name not in (SOURCE, TARGET)


def _read_nodes(table: PartTable, columns: Collection[str] | None, rank: int) -> tuple[Rows, list[str]]:
    features = table.chosen([name for name in table.names if is_node_feature(name)], columns)
    if not features:
        raise GraphError(f"{table.folder}: has no feature columns besides {', '.join(table.names)}. Add at least one.")
    # Labels that are text are left out: prediction does not need them.
    others = [LABEL] if LABEL in table.numbers else []
    others += [PART] if PART in table.names else []
    return table.read([ID, *others, *features], rank, WHOLE_OF_NODES), features


def _read_edges(table: PartTable, columns: Collection[str] | None, rank: int) -> tuple[Rows, list[str]]:
    attributes = table.chosen([name for name in table.names if is_edge_column(name)], columns)
    return table.read([SOURCE, TARGET, *attributes], rank, WHOLE_OF_EDGES), attributes


def _owners(rows: Rows, ranks: int, group: Group) -> Tensor:
    """The process of each node [rows]."""
    if PART not in rows.columns:
        return hash_part(rows.columns[ID], ranks)
    parts = rows.columns[PART]
    lowest = int(parts.min()) if len(parts) else 0
    with together(group):
        if lowest < 0:
            raise GraphError(f"column {PART!r} holds {lowest}. Number parts from 0.")
    count = max(gather(int(parts.max()) + 1 if len(parts) else 1, group))
    owner: Tensor = parts * ranks // count
    return owner


def _features(rows: Rows, names: list[str], table: PartTable) -> tuple[Tensor, list[str]]:
    """Columns as one matrix [rows, features], and its names: those of a column of lists are numbered."""
    parts = [values[:, None] if values.dim() == 1 else values for values in (rows.columns[name] for name in names)]
    x = torch.cat(parts, 1) if parts else torch.empty(len(rows.number), 0)
    bad = (~x.isfinite()).any(1).nonzero()
    if len(bad):
        raise GraphError(
            f"{table.folder}: row {int(rows.number[int(bad[0])])} has a NaN or infinity. Fill in missing values."
        )
    listed: list[str] = []
    for name, part in zip(names, parts, strict=True):
        many = rows.columns[name].dim() > 1
        listed += [f"{name}{place}" for place in range(part.shape[1])] if many else [name]
    return x, listed


def _agree(x: Tensor, names: list[str], table: PartTable, group: Group) -> tuple[Tensor, tuple[str, ...] | None]:
    """The matrix and its names as all processes have them: a process without rows does not know how long lists are."""
    found = gather(names if len(x) else None, group)
    known = [other for other in found if other is not None]
    with together(group):
        if any(other != known[0] for other in known):
            raise GraphError(f"{table.folder}: a column has lists of different lengths. Make them equal.")
    agreed = known[0] if known else names
    return (x if len(x) else torch.empty(0, len(agreed))), tuple(agreed) or None


def _part(
    own: Tensor, facts: Tensor, column: Tensor, table: PartTable, num_nodes: int, group: Group
) -> tuple[Part, Tensor]:
    """The part of this process, and the columns of its edge index in the numbers of the part.

    Args:
        own: [own], numbers of own nodes, ascending.
        facts: [columns, 2, 2], number and owner of both ends of every column with an own end.
        column: [columns], their numbers in the whole graph, ascending.
        table: the table of edges.
        num_nodes: nodes of the whole graph.
        group: the processes.
    """
    rank, ranks = place(group)
    number, owner = facts.unbind(-1)
    foreign = torch.stack([owner.flatten(), number.flatten()], 1)[(owner != rank).flatten()]
    ghosts = foreign.unique(dim=0)  # by owner, then number
    nodes = torch.cat([own, ghosts[:, 1]])
    ascending, order = nodes.sort()
    columns = order[torch.searchsorted(ascending, number.contiguous())].t().contiguous()
    first = first_columns(columns, len(nodes))
    edge_index, ends = columns[:, first], owner[first].t()
    # An own node goes to every process that owns one of its neighbours, which has it as a ghost in this same order.
    send = [own[:0]] * ranks
    for process in set(ghosts[:, 0].tolist()):
        send[process] = torch.cat([edge_index[0][ends[1] == process], edge_index[1][ends[0] == process]]).unique()
    receive = torch.bincount(ghosts[:, 0], minlength=ranks).tolist()
    counted = ends.amin(0) == rank
    edges = _edge_numbers(column[first], table, group)
    halo = Halo(len(own), send, receive, group)
    return Part(rank, ranks, num_nodes, nodes, edge_index, edges, counted, halo), columns


def _edge_numbers(column: Tensor, table: PartTable, group: Group) -> Tensor:
    """The number of each edge among all edges, given its first column: the process that read the column counts."""
    rank, ranks = place(group)
    own = [range(one.first, one.first + one.rows) for one in table.groups if one.reader == rank]
    start, stop = (own[0].start, own[-1].stop) if own else (0, 0)
    way = route(table.readers(column) if len(column) else column, group)
    asked = way.deliver(column) - start
    is_edge = torch.zeros(stop - start, dtype=torch.long)
    is_edge[asked] = 1
    counts = torch.zeros(ranks, dtype=torch.long)
    counts[rank] = int(is_edge.sum())
    before = int(total(counts, group)[:rank].sum())
    return way.answer((is_edge.cumsum(0) - 1)[asked] + before)
