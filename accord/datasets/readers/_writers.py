"""Writers of graph files in the forms that `read_graph` reads."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from torch import Tensor
from torch_geometric.data import Data

from accord._files import replacing, write_text
from accord.datasets._sparse import SPARSE_ARRAYS, SPARSE_VALUES
from accord.datasets.readers._arrays import GRAPH_ARRAYS
from accord.datasets.readers._raw import check_feature_names, check_label_text, check_texts
from accord.datasets.readers.tables import LABEL_PREFIX, is_feature_column
from accord.errors import GraphError
from accord.graphs import EDGES, MASKS, NODES, columns_of
from accord.graphs._checks import check_integer, check_tensor
from accord.graphs.features._columns import CATEGORY, MARK, MISSING, NUMBER, category_column

NODES_FILE, EDGES_FILE = "nodes.csv", "edges.csv"
SPARSE = 0.2  # largest share of entries that are not zero, of a matrix that is stored as CSR
SMALL = 2**16  # entries; a smaller matrix stays dense


def write_graph(graph: Data, path: str | Path, label_names: Sequence[str] | None = None) -> None:
    """Write one graph: `.npz`, `.json`, or (no suffix) a folder with nodes.csv and edges.csv.

    Each file is written atomically: a crash or a full disk leaves a file that was there before as it is. Sparse
    features go into .npz files as a CSR matrix. In tables, categories become columns of text again, and numbers that
    are marked as missing become empty cells.

    Args:
        graph: with `x` and `edge_index`; `y`, `edge_attr`, `node_id`, masks, `node_names`, and names and kinds of
            columns are written if present.
        path: its suffix decides the form.
        label_names: written in place of the state numbers; None takes those of the graph, if it has any.
    """
    path = Path(path)
    given = {name: graph[name] for name in GRAPH_ARRAYS if isinstance(graph.get(name), Tensor)}
    arrays = {name: check_tensor(tensor, name, "write_graph").detach().cpu() for name, tensor in given.items()}
    if "x" not in arrays or "edge_index" not in arrays:
        raise GraphError("write_graph: the graph has no x or no edge_index. Set both; edge_index may be empty.")
    label_names = graph.get("label_names") if label_names is None else label_names
    labels = None if "y" not in arrays else _name(check_integer(arrays["y"], "y", "write_graph").numpy(), label_names)
    lists = _lists(graph)
    if path.suffix == ".npz":
        stored: dict[str, Any] = {name: tensor.numpy() for name, tensor in arrays.items()}
        stored |= {} if labels is None else {"y": labels}
        stored |= {name: np.array(texts, np.str_) for name, texts in lists.items()}
        with replacing(path) as beside, beside.open("wb") as file:
            np.savez_compressed(file, **_sparse(stored))
    elif path.suffix == ".json":
        listed = {name: tensor.tolist() for name, tensor in arrays.items()}
        listed |= {} if labels is None else {"y": labels.tolist()}
        write_text(path, json.dumps(listed | lists) + "\n")
    elif not path.suffix:
        _write_tables(path, arrays, labels, graph, lists)
    else:
        raise GraphError(
            f"write_graph: {path}: graphs are not written to {path.suffix} files. Choose .npz, .json, or no suffix for "
            "a folder of tables."
        )


def _lists(graph: Data) -> dict[str, list[str]]:
    """Names and kinds that the graph carries, checked against its tensors."""
    found: dict[str, list[str]] = {}
    for place in (NODES, EDGES):
        names = graph.get(place.names)
        if names is None or graph.get(place.values) is None:
            continue
        width = graph[place.values].shape[-1] if graph[place.values].dim() > 1 else 1
        found[place.names] = check_feature_names(names, width, "write_graph", place.names)
        if graph.get(place.kinds) is not None and columns_of(graph, place, "write_graph") is not None:
            found[place.kinds] = list(graph[place.kinds])
    for name, count in (("node_names", len(graph.x)), ("task_names", None)):
        if graph.get(name) is not None:
            found[name] = check_texts(graph[name], name, "write_graph")
            if count is not None and len(found[name]) != count:
                raise GraphError(f"write_graph: there are {len(found[name])} {name} for {count} nodes. Name each node.")
    return found


def _sparse(stored: dict[str, Any]) -> dict[str, Any]:
    """The arrays with x as a CSR matrix, if that is smaller."""
    x = stored["x"]
    if x.ndim != 2 or x.dtype != np.float32 or np.count_nonzero(x) > SPARSE * x.size or x.size < SMALL:
        return stored
    matrix = scipy.sparse.csr_array(x)
    parts = zip(SPARSE_ARRAYS, (matrix.indptr, matrix.indices, np.array(matrix.shape)), strict=True)
    stored = {name: values for name, values in stored.items() if name != "x"} | dict(parts)
    return stored if (matrix.data == 1).all() else stored | {SPARSE_VALUES: matrix.data}


def _name(states: np.ndarray, label_names: Sequence[str] | None) -> np.ndarray:
    if label_names is None:
        return states
    for name in label_names:
        check_label_text(name, "write_graph")
    if states.size and not -1 <= states.min() <= states.max() < len(label_names):
        raise GraphError(
            f"write_graph: labels run from {states.min()} to {states.max()}, but there are {len(label_names)} "
            "label_names. Name each state, numbered from 0; -1 stands for a missing label."
        )
    table = np.array([*label_names, ""], dtype=np.str_)  # the last entry is for -1, a missing label
    named: np.ndarray = table[states]
    return named


def _write_tables(
    folder: Path, arrays: dict[str, Tensor], labels: np.ndarray | None, graph: Data, lists: dict[str, list[str]]
) -> None:
    x = arrays["x"]
    names = lists.get("feature_names", [f"x{column}" for column in range(x.shape[1])])
    features = _columns(x, names, lists.get("feature_kinds"))
    taken = next((name for name in features if not is_feature_column(name)), None)
    if taken is not None:
        raise GraphError(
            f"write_graph: {folder / NODES_FILE}: the feature name {taken!r} is the name of another column. Rename the "
            "feature, or write .npz or .json."
        )
    ids = lists.get("node_names", [str(node) for node in range(len(x))])
    if len(set(ids)) < len(ids):
        raise GraphError(f"write_graph: {folder / NODES_FILE}: node_names repeat. Give every node a name of its own.")
    columns: dict[str, list[Any]] = {"id": ids}
    if "node_id" in arrays:
        columns["node_id"] = arrays["node_id"].tolist()
    columns |= {name: arrays[name].int().tolist() for name in MASKS if name in arrays}
    if labels is not None:
        cells = np.where(labels == -1, "", labels.astype(np.str_)) if labels.dtype.kind != "U" else labels
        numbered = [str(task) for task in range(1 if cells.ndim == 1 else cells.shape[1])]
        titles = lists.get("task_names", numbered)
        tasks = (
            {"label": cells}
            if cells.ndim == 1
            else {f"{LABEL_PREFIX}{title}": cells[:, task] for task, title in enumerate(titles)}
        )
        columns |= {name: column.tolist() for name, column in tasks.items()}
    _write_csv(folder / NODES_FILE, columns | features)
    source, target = ([ids[node] for node in ends] for ends in arrays["edge_index"].tolist())
    columns = {"source": source, "target": target}
    if "edge_attr" in arrays:
        attributes = arrays["edge_attr"][:, None] if arrays["edge_attr"].dim() == 1 else arrays["edge_attr"]
        names = lists.get("edge_names", [f"a{column}" for column in range(attributes.shape[1])])
        columns |= _columns(attributes, names, lists.get("edge_kinds"))
    _write_csv(folder / EDGES_FILE, columns)


def _columns(values: Tensor, names: Sequence[str], kinds: Sequence[str] | None) -> dict[str, list[Any]]:
    """Columns as tables have them: numbers with gaps, and text in place of its categories."""
    kinds = [NUMBER] * len(names) if kinds is None else kinds
    found: dict[str, list[Any]] = {}
    columns = values.t().tolist()
    for name, kind, cells in zip(names, kinds, columns, strict=True):
        if kind == NUMBER:
            found[name] = cells
        elif kind == CATEGORY:
            column = category_column(name)
            texts = found.setdefault(column, [""] * len(cells))
            for row in [row for row, cell in enumerate(cells) if cell]:
                if texts[row]:
                    raise GraphError(
                        f"write_graph: {column!r} has several values at node {row}, which a table cannot hold. Write "
                        ".npz or .json."
                    )
                texts[row] = name[len(column) + 1 :]
    for name, kind, marks in zip(names, kinds, columns, strict=True):
        cells = found.get(name.removesuffix(MARK), [])
        if kind == MISSING and cells:
            found[name.removesuffix(MARK)] = ["" if mark else cell for mark, cell in zip(marks, cells, strict=True)]
    return found


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with replacing(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
