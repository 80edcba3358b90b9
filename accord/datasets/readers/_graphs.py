"""Readers of graph files: .npz, .json, or a folder with nodes.csv and edges.csv. No reader executes code."""

from collections.abc import Callable, Sequence
from pathlib import Path

from torch_geometric.data import Data

from accord.datasets._sources import check_regular_file, reading
from accord.datasets.readers._arrays import read_npz
from accord.datasets.readers._json import read_json
from accord.datasets.readers._raw import RawGraph, find_label_names
from accord.datasets.readers._tables import is_table_folder, read_tables
from accord.errors import DataNotFoundError, GraphError

FORMS = ".npz, .json, or a folder with nodes.csv and edges.csv"


def read_graph(path: str | Path, label_names: Sequence[str] | None = None, with_labels: bool = True) -> Data:
    """Read one graph.

    `.npz`: arrays `x` [nodes, features] (or CSR: `x_indptr`, `x_indices`, `x_shape`, `x_data`), `edge_index`
    [2, edges]; optional `y` [nodes] or [nodes, tasks], `edge_attr` [edges, attributes], `node_id` [nodes],
    `feature_names` [features], and `train_mask`, `val_mask`, `test_mask` [nodes], which say what labels are for.
    `.json`: an object with the same keys and nested lists; null is a missing label.
    A folder: `nodes.csv` with `id`, feature columns, and `label` (or `label_*` for several tasks); `edges.csv` with
    `source`, `target`, and attribute columns. An empty label is a missing label. Masks are columns of 0 and 1.

    Numbers are plain decimals in the range of float32. Equal places of a CSR matrix are added, as SciPy does.

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
            with reading(path):
                return read_tables(path)
        raise GraphError(f"{path}: is a folder without nodes.csv, so not a graph. Give {FORMS}.")
    if not path.exists():
        raise DataNotFoundError(f"{path}: there is no such file or folder. Give {FORMS}.")
    check_regular_file(path)
    if path.suffix not in READERS:
        raise GraphError(f"{path}: graphs cannot be read from {path.suffix or 'such'} files. Give {FORMS}.")
    with reading(path):
        return READERS[path.suffix](path)


def _with_own_names(raws: Sequence[RawGraph]) -> list[Data]:
    names = find_label_names(raws)
    graphs = [raw.to_data(names) for raw in raws]
    if names is not None:
        for graph in graphs:
            graph.label_names = names
    return graphs


READERS: dict[str, Callable[[Path], RawGraph]] = {".npz": read_npz, ".json": read_json}
