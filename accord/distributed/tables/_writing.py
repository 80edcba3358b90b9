"""Writing a graph as a folder of Parquet files, for `read_parts`."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord._files import replacing
from accord.distributed.tables._reading import (
    EDGE_FOLDER,
    ID,
    LABEL,
    NODE_FOLDER,
    PART,
    SOURCE,
    TARGET,
    is_edge_column,
    is_node_feature,
)
from accord.errors import GraphError, OptionError
from accord.graphs import EDGES, NODES, graph_topology

ROWS = 2**16  # of a row group; the smallest piece that a process reads


def write_parts(data: Data, folder: str | Path, files: int = 4, part: Tensor | None = None) -> None:
    """Write a graph as nodes/part-*.parquet and edges/part-*.parquet.

    Args:
        data: with `x` and `edge_index`; `y` [nodes], `edge_attr`, `node_id` (the ids, otherwise numbers from 0) and
            names of columns are written if present. Features without names become one column `x` of lists. Names must
            differ, and not be those of other columns, such as `id`, `label` and `part`, or `source` and `target`.
        folder: where to write; must not hold a graph yet.
        files: how many files of each kind.
        part: [nodes], the part of each node, such as `partition` returns; None leaves that to the reader.
    """
    path = Path(folder)
    if files < 1:
        raise OptionError(f"write_parts: files={files}. Write at least 1.")
    for name in (NODE_FOLDER, EDGE_FOLDER):
        if (path / name).exists() and any((path / name).iterdir()):
            raise OptionError(f"write_parts: {path / name} is not empty. Choose another folder, or remove it.")
    count = graph_topology(data).num_nodes  # also refuses what is not a graph
    if not isinstance(data.x, Tensor) or data.x.dim() != 2:
        raise GraphError("write_parts: the graph has no node features x [nodes, features]. Set data.x.")
    if data.y is not None and data.y.dim() != 1:
        raise GraphError("write_parts: y has several tasks; a graph in parts has one. Leave y out.")
    ids = data.node_id if "node_id" in data else torch.arange(count)
    nodes = {ID: _numpy(ids)} | ({} if data.y is None else {LABEL: _numpy(data.y)})
    if part is not None:
        nodes[PART] = _numpy(part)
    nodes |= _columns(data.x, data.get(NODES.names), "x", is_node_feature)
    ends = torch.empty(2, 0, dtype=torch.long) if data.edge_index is None else data.edge_index
    edges = dict(zip((SOURCE, TARGET), map(_numpy, ids[ends]), strict=True))
    if data.edge_attr is not None:
        attr = data.edge_attr
        edges |= _columns(attr[:, None] if attr.dim() == 1 else attr, data.get(EDGES.names), "attr", is_edge_column)
    for name, columns in ((NODE_FOLDER, nodes), (EDGE_FOLDER, edges)):
        _write(columns, path / name, files)


def _columns(
    values: Tensor, names: Sequence[str] | None, name: str, is_free: Callable[[str], bool]
) -> dict[str, np.ndarray]:
    if names is None:
        return {name: _numpy(values)}
    taken = next((one for one in names if not is_free(one)), None)
    if taken is not None:
        raise GraphError(f"write_parts: the feature name {taken!r} is the name of another column. Rename the feature.")
    twice = next((one for place, one in enumerate(names) if one in names[:place]), None)
    if twice is not None:
        raise GraphError(f"write_parts: two features have the name {twice!r}. Rename one of them.")
    return dict(zip(names, _numpy(values.t()), strict=True))


def _numpy(values: Tensor) -> np.ndarray:
    found: np.ndarray = values.detach().cpu().numpy()
    return found


def _write(columns: dict[str, np.ndarray], folder: Path, files: int) -> None:
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise OptionError(
            f"{folder}: writing Parquet needs the package pyarrow. Install it: pip install 'accord[tables]'."
        ) from error

    def array(values: np.ndarray) -> Any:
        if values.ndim == 1:
            return arrow.array(values)
        return arrow.FixedSizeListArray.from_arrays(arrow.array(values.reshape(-1)), values.shape[1])

    rows = len(next(iter(columns.values())))
    for file in range(files):
        own = slice(rows * file // files, rows * (file + 1) // files)
        table = arrow.table({name: array(np.ascontiguousarray(values[own])) for name, values in columns.items()})
        with replacing(folder / f"part-{file:05d}.parquet") as beside:
            parquet.write_table(table, beside, row_group_size=ROWS)
