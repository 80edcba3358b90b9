"""Writers of graph files in the forms that `read_graph` reads."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from accord._files import replacing, write_text
from accord.datasets.readers._arrays import FEATURE_NAMES, GRAPH_ARRAYS
from accord.datasets.readers._graphs import FORMS
from accord.datasets.readers._raw import check_feature_names, check_label_text
from accord.datasets.readers._tables import EDGES_FILE, LABEL_PREFIX, NODES_FILE, is_feature_column
from accord.errors import GraphError
from accord.graphs import MASKS
from accord.graphs._checks import check_integer, check_tensor


def write_graph(graph: Data, path: str | Path, label_names: Sequence[str] | None = None) -> None:
    """Write one graph: `.npz`, `.json`, or (no suffix) a folder with nodes.csv and edges.csv.

    Each file is written atomically: a crash or a full disk leaves a file that was there before as it is.

    Args:
        graph: with `x` and `edge_index`; `y`, `edge_attr`, `node_id`, masks and `feature_names` are written if
            present.
        path: its suffix decides the form.
        label_names: written in place of the state numbers.
    """
    path = Path(path)
    given = {name: graph[name] for name in GRAPH_ARRAYS if isinstance(graph.get(name), Tensor)}
    arrays = {name: check_tensor(tensor, name, "write_graph").detach().cpu() for name, tensor in given.items()}
    if "x" not in arrays or "edge_index" not in arrays:
        raise GraphError("write_graph: the graph has no x or no edge_index. Set both; edge_index may be empty.")
    labels = None if "y" not in arrays else _name(check_integer(arrays["y"], "y", "write_graph").numpy(), label_names)
    names = _feature_names(graph)
    if path.suffix == ".npz":
        stored: dict[str, Any] = {name: tensor.numpy() for name, tensor in arrays.items()}
        stored |= {} if labels is None else {"y": labels}
        stored |= {} if names is None else {FEATURE_NAMES: np.array(names, np.str_)}
        with replacing(path) as beside, beside.open("wb") as file:
            np.savez_compressed(file, **stored)
    elif path.suffix == ".json":
        listed = {name: tensor.tolist() for name, tensor in arrays.items()}
        listed |= {} if labels is None else {"y": labels.tolist()}
        write_text(path, json.dumps(listed | ({} if names is None else {FEATURE_NAMES: names})) + "\n")
    elif not path.suffix:
        _write_tables(path, arrays, labels, names)
    else:
        raise GraphError(f"write_graph: {path}: graphs are not written to {path.suffix} files. Choose {FORMS}.")


def _feature_names(graph: Data) -> list[str] | None:
    names = graph.get(FEATURE_NAMES)
    return None if names is None else check_feature_names(names, graph.x.shape[-1], "write_graph")


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
    folder: Path, arrays: dict[str, Tensor], labels: np.ndarray | None, feature_names: list[str] | None
) -> None:
    names = [f"x{column}" for column in range(arrays["x"].shape[1])] if feature_names is None else feature_names
    taken = next((name for name in names if not is_feature_column(name)), None)
    if taken is not None:
        raise GraphError(
            f"write_graph: {folder / NODES_FILE}: the feature name {taken!r} is the name of another column. Rename the "
            "feature, or write .npz or .json."
        )
    x = arrays["x"].tolist()
    columns: dict[str, list[Any]] = {"id": list(range(len(x)))}
    if "node_id" in arrays:
        columns["node_id"] = arrays["node_id"].tolist()
    columns |= {name: arrays[name].int().tolist() for name in MASKS if name in arrays}
    if labels is not None:
        cells = np.where(labels == -1, "", labels.astype(np.str_)) if labels.dtype.kind != "U" else labels
        tasks = (
            {"label": cells}
            if cells.ndim == 1
            else {f"{LABEL_PREFIX}{task}": cells[:, task] for task in range(cells.shape[1])}
        )
        columns |= {name: column.tolist() for name, column in tasks.items()}
    columns |= {name: [row[column] for row in x] for column, name in enumerate(names)}
    _write_csv(folder / NODES_FILE, columns)
    source, target = arrays["edge_index"].tolist()
    columns = {"source": source, "target": target}
    if "edge_attr" in arrays:
        attributes = arrays["edge_attr"][:, None] if arrays["edge_attr"].dim() == 1 else arrays["edge_attr"]
        columns |= {f"a{column}": attributes[:, column].tolist() for column in range(attributes.shape[1])}
    _write_csv(folder / EDGES_FILE, columns)


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with replacing(path) as beside, beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
