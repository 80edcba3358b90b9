"""Writers of graphs, in the forms that `read_graph` reads."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from accord.datasets.readers._graphs import ARRAYS, FORMS
from accord.datasets.readers._tables import EDGES, NODES
from accord.errors import GraphError


def write_graph(graph: Data, path: str | Path, label_names: Sequence[str] | None = None) -> None:
    """Write one graph: `.npz`, `.json`, or (no suffix) a folder with nodes.csv and edges.csv.

    Args:
        graph: with `x` and `edge_index`; `y`, `edge_attr` and `node_id` go along.
        path: the suffix says in what form.
        label_names: write these instead of the numbers of the states.
    """
    path = Path(path)
    arrays = {name: graph[name].detach().cpu() for name in ARRAYS if isinstance(graph.get(name), Tensor)}
    if "x" not in arrays or "edge_index" not in arrays:
        raise GraphError("write_graph: the graph has no x or no edge_index. Set both; edge_index may be empty.")
    labels = None if "y" not in arrays else _name(arrays["y"].numpy(), label_names)
    if path.suffix == ".npz":
        path.parent.mkdir(parents=True, exist_ok=True)
        stored: dict[str, Any] = {name: tensor.numpy() for name, tensor in arrays.items()}
        np.savez_compressed(path, **(stored | ({} if labels is None else {"y": labels})))
    elif path.suffix == ".json":
        path.parent.mkdir(parents=True, exist_ok=True)
        listed = {name: tensor.tolist() for name, tensor in arrays.items()}
        path.write_text(json.dumps(listed | ({} if labels is None else {"y": labels.tolist()})) + "\n")
    elif not path.suffix:
        _write_tables(path, arrays, labels)
    else:
        raise GraphError(f"write_graph: {path}: graphs are not written to {path.suffix} files. Choose {FORMS}.")


def _name(states: np.ndarray, label_names: Sequence[str] | None) -> np.ndarray:
    if label_names is None:
        return states
    table = np.array([*label_names, ""], dtype=np.str_)  # the last stands for -1, a missing label
    named: np.ndarray = table[states]
    return named


def _write_tables(folder: Path, arrays: dict[str, Tensor], labels: np.ndarray | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    x = arrays["x"].tolist()
    columns: dict[str, list[Any]] = {"id": list(range(len(x)))}
    if "node_id" in arrays:
        columns["node_id"] = arrays["node_id"].tolist()
    if labels is not None:
        cells = np.where(labels == -1, "", labels.astype(np.str_)) if labels.dtype.kind != "U" else labels
        tasks = (
            {"label": cells} if cells.ndim == 1 else {f"label_{task}": cells[:, task] for task in range(cells.shape[1])}
        )
        columns |= {name: column.tolist() for name, column in tasks.items()}
    columns |= {f"x{place}": [row[place] for row in x] for place in range(arrays["x"].shape[1])}
    _write_csv(folder / NODES, columns)
    source, target = arrays["edge_index"].tolist()
    columns = {"source": source, "target": target}
    if "edge_attr" in arrays:
        attributes = arrays["edge_attr"].reshape(len(source), -1)
        columns |= {f"a{place}": attributes[:, place].tolist() for place in range(attributes.shape[1])}
    _write_csv(folder / EDGES, columns)


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
