"""Readers of graph files: .npz, .json, or a folder with nodes.csv and edges.csv. No reader executes code."""

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from accord.datasets._sparse import dense_rows
from accord.datasets.readers._raw import MAX_INTEGER, RawGraph, find_label_names
from accord.datasets.readers._tables import is_table_folder, read_tables
from accord.errors import DataNotFoundError, GraphError

FORMS = ".npz, .json, or a folder with nodes.csv and edges.csv"
GRAPH_ARRAYS = ("x", "edge_index", "y", "edge_attr", "node_id")
SPARSE_ARRAYS = ("x_indptr", "x_indices", "x_shape")
FEATURE_NAMES = "feature_names"


def read_graph(path: str | Path, label_names: Sequence[str] | None = None, with_labels: bool = True) -> Data:
    """Read one graph.

    `.npz`: arrays `x` [nodes, features] (or CSR: `x_indptr`, `x_indices`, `x_shape`, `x_data`), `edge_index`
    [2, edges]; optional `y` [nodes] or [nodes, tasks], `edge_attr` [edges, attributes], `node_id` [nodes] and
    `feature_names` [features].
    `.json`: an object with the same keys and nested lists; null is a missing label.
    A folder: `nodes.csv` with `id`, feature columns, and `label` (or `label_*` for several tasks); `edges.csv` with
    `source`, `target`, and attribute columns. An empty label is a missing label.

    Feature names (the feature columns of nodes.csv, or `feature_names`) become the graph's `feature_names`, a list
    of str; a file without names gives a graph without them.

    Args:
        path: the file or folder.
        label_names: names of the states, if labels are names; None takes the names in the file, sorted, and stores
            them in the graph's `label_names`.
        with_labels: False ignores the labels.
    """
    raw = read_raw(Path(path))
    if not with_labels or label_names is not None:
        return raw.to_data(label_names, with_labels)
    return _with_own_names([raw])[0]


def read_graphs(path: str | Path, label_names: Sequence[str] | None = None, with_labels: bool = True) -> list[Data]:
    """Read one graph, or all graphs of a folder in the order of their file names; see `read_graph`."""
    raws = [read_raw(entry) for entry in graph_entries(Path(path))]
    if not with_labels or label_names is not None:
        return [raw.to_data(label_names, with_labels) for raw in raws]
    return _with_own_names(raws)


def graph_entries(path: Path) -> list[Path]:
    """The graphs at a path: the path itself, or the entries of a folder, sorted by name, without hidden files."""
    if not path.is_dir() or is_table_folder(path):
        return [path]
    entries = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    if not entries:
        raise DataNotFoundError(f"{path}: the folder is empty. Put graphs into it: {FORMS}.")
    return entries


def read_raw(path: Path) -> RawGraph:
    """Read the arrays of a graph; labels stay as the file has them."""
    if path.is_dir():
        if is_table_folder(path):
            return read_tables(path)
        raise GraphError(f"{path}: is a folder without nodes.csv, so not a graph. Give {FORMS}.")
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such file or folder. Give {FORMS}.")
    if path.suffix not in READERS:
        raise GraphError(f"{path}: graphs cannot be read from {path.suffix or 'such'} files. Give {FORMS}.")
    return READERS[path.suffix](path)


def _read_npz(path: Path) -> RawGraph:
    try:
        # Opened here, because numpy does not close a broken archive.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            wanted = (*GRAPH_ARRAYS, *SPARSE_ARRAYS, "x_data", FEATURE_NAMES)
            arrays = {name: archive[name] for name in wanted if name in archive.files}
            held = list(archive.files)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, AttributeError, TypeError) as error:
        raise GraphError(
            f"{path}: cannot be read as an .npz file of plain arrays ({error}). Write it with numpy.savez; text needs "
            "dtype=str, not object."
        ) from error
    if "x" not in arrays and all(name in arrays for name in SPARSE_ARRAYS):
        arrays["x"] = _dense(path, arrays)
    return _assemble(path, arrays, held, arrays.get(FEATURE_NAMES))


def _dense(path: Path, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Features of a compressed sparse row matrix."""
    indptr, indices, shape = (_integers(path, name, arrays[name]).ravel() for name in SPARSE_ARRAYS)
    data = arrays.get("x_data")
    fits = (
        len(shape) == 2
        and bool((shape >= 0).all())
        and len(indptr) == shape[0] + 1
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and bool((np.diff(indptr) >= 0).all())
        and (not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < shape[1]))
        and (data is None or (data.shape == indices.shape and data.dtype.kind in "fiub"))
    )
    if not fits:
        raise GraphError(
            f"{path}: {', '.join(SPARSE_ARRAYS)} and x_data do not make a sparse matrix. Take them "
            "from SciPy's csr_matrix."
        )
    values = None if data is None else torch.from_numpy(data.astype(np.float32))
    rows, columns = shape.tolist()
    return dense_rows(torch.from_numpy(indptr), torch.from_numpy(indices), values, (rows, columns)).numpy()


def _read_json(path: Path) -> RawGraph:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise GraphError(f"{path}, line {error.lineno}: is not valid json ({error.msg}). Correct it there.") from error
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}: is not text in UTF-8 ({error}). Save it again in UTF-8.") from error
    if not isinstance(content, dict):
        raise GraphError(
            f'{path}: holds a {type(content).__name__}. Write an object: {{"x": [[..]], "edge_index": ..}}.'
        )
    held = {name: value for name, value in content.items() if value is not None}
    arrays = {name: _array(path, name, held[name]) for name in GRAPH_ARRAYS if name in held}
    return _assemble(path, arrays, list(content), held.get(FEATURE_NAMES))


def _array(path: Path, name: str, value: Any) -> np.ndarray:
    """A nested list as an array; labels may contain null and text."""
    if name == "y":
        return _label_array(path, value)
    try:
        array = np.array(value)
    except ValueError as error:
        raise GraphError(f"{path}: {name} has rows of different lengths ({error}). Make them equal.") from error
    if name == "edge_index" and array.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    return array


def _label_array(path: Path, value: Any) -> np.ndarray:
    cells = np.array(value, dtype=object)
    flat = cells.ravel().tolist()
    for place, cell in enumerate(flat):
        if isinstance(cell, bool) or not isinstance(cell, (int, float, str, type(None))):
            node = place // max(1, cells[:1].size)
            raise GraphError(f"{path}, node {node}: the label {cell!r} is neither a number nor a name nor null.")
    if any(isinstance(cell, str) for cell in flat):
        return np.array(["" if cell is None else str(cell) for cell in flat], dtype=np.str_).reshape(cells.shape)
    return np.array([-1 if cell is None else cell for cell in flat]).reshape(cells.shape)


def _assemble(path: Path, arrays: Mapping[str, np.ndarray], held: Sequence[str], feature_names: Any) -> RawGraph:
    for name in ("x", "edge_index"):
        if name not in arrays:
            raise GraphError(
                f"{path}: has no {name!r} (it holds {', '.join(held) or 'nothing'}). A graph needs x [nodes, features] "
                "and edge_index [2, edges], which may be empty."
            )
    x = arrays["x"]
    if x.dtype.kind not in "fiub" or x.ndim != 2:
        raise GraphError(
            f"{path}: x has shape {list(x.shape)} and type {x.dtype}, but numbers [nodes, features] are needed."
        )
    attributes = arrays.get("edge_attr")
    if attributes is not None and attributes.dtype.kind not in "fiub":
        raise GraphError(f"{path}: edge_attr has type {attributes.dtype}, but numbers are needed.")
    labels = arrays.get("y")
    return RawGraph(
        path=path,
        x=x,
        edge_index=_integers(path, "edge_index", arrays["edge_index"]),
        labels=labels if labels is None or labels.dtype.kind == "U" else _integers(path, "y", labels),
        edge_attr=attributes,
        node_id=_integers(path, "node_id", arrays["node_id"]) if "node_id" in arrays else None,
        feature_names=feature_names,
    )


def _integers(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """Whole numbers as int64; floats are accepted if they are whole."""
    if values.dtype.kind == "f" and bool((values == np.round(values)).all()):
        whole: np.ndarray = np.clip(values, -MAX_INTEGER, MAX_INTEGER).astype(np.int64)
        return whole
    if values.dtype.kind not in "iu":
        raise GraphError(f"{path}: {name} has type {values.dtype}, but whole numbers are needed.")
    return values.astype(np.int64)


def _with_own_names(raws: Sequence[RawGraph]) -> list[Data]:
    names = find_label_names(raws)
    graphs = [raw.to_data(names) for raw in raws]
    if names is not None:
        for graph in graphs:
            graph.label_names = names
    return graphs


READERS: dict[str, Callable[[Path], RawGraph]] = {".npz": _read_npz, ".json": _read_json}
