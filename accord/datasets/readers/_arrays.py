"""Named arrays, as .npz and .json files hold them, as the arrays of a graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accord.datasets._archives import read_archive
from accord.datasets._sparse import SPARSE_ARRAYS, SPARSE_VALUES, dense_rows
from accord.datasets.readers._raw import RawGraph, check_label_text
from accord.errors import GraphError
from accord.graphs import MASKS

GRAPH_ARRAYS = ("x", "edge_index", "y", "edge_attr", "node_id", *MASKS)
LISTS = ("feature_names", "feature_kinds", "node_names", "edge_names", "edge_kinds", "task_names")  # of text
REMEDY = "Write it with numpy.savez; text needs dtype=str, not object."


def read_npz(path: Path) -> RawGraph:
    """Read a graph from an .npz file."""
    arrays, held = read_archive(path, (*GRAPH_ARRAYS, *SPARSE_ARRAYS, SPARSE_VALUES, *LISTS), REMEDY)
    if "x" not in arrays and all(name in arrays for name in SPARSE_ARRAYS):
        arrays |= {name: whole_array(path, name, arrays[name]) for name in SPARSE_ARRAYS}
        arrays["x"] = dense_rows(arrays, str(path))
    return assemble(path, arrays, held, arrays)


def assemble(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    held: Sequence[str],
    lists: Mapping[str, Any],
    graph_name: str | None = None,
) -> RawGraph:
    """Check the types of arrays and put them into a graph.

    Args:
        path: the file, for messages.
        arrays: by the names of `GRAPH_ARRAYS`; all but x and edge_index may be absent.
        held: names of everything in the file.
        lists: names and kinds by the names of `LISTS`, as the file has them; all may be absent.
        graph_name: of the graph, if a file has several.
    """
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
    if labels is not None and labels.dtype.kind == "U":
        for text in np.unique(labels):
            check_label_text(str(text), str(path))
    return RawGraph(
        path=path,
        x=x,
        edge_index=whole_array(path, "edge_index", arrays["edge_index"]),
        labels=labels if labels is None or labels.dtype.kind == "U" else whole_array(path, "y", labels),
        edge_attr=attributes,
        node_id=whole_array(path, "node_id", arrays["node_id"]) if "node_id" in arrays else None,
        feature_names=lists.get("feature_names"),
        feature_kinds=lists.get("feature_kinds"),
        node_names=lists.get("node_names"),
        edge_names=lists.get("edge_names"),
        edge_kinds=lists.get("edge_kinds"),
        task_names=lists.get("task_names"),
        name=graph_name,
        masks={name: arrays[name] for name in MASKS if name in arrays},
    )


def whole_array(path: Path, name: str, values: np.ndarray) -> np.ndarray:
    """Whole numbers as int64. Floats are accepted if they are whole, and small enough to be exact."""
    if values.dtype.kind == "f" and bool((values == np.round(values)).all()):
        exact = min(2 ** (np.finfo(values.dtype).nmant + 1), 2**63 - 1)
        bad = np.abs(values) > exact  # beyond, neighbours may have been merged
    elif values.dtype.kind == "u":
        bad = values > 2**63 - 1
    elif values.dtype.kind == "i":
        return values.astype(np.int64)
    else:
        raise GraphError(f"{path}: {name} has type {values.dtype}, but whole numbers are needed.")
    if bool(bad.any()):
        place = np.argwhere(bad)[0].tolist()
        raise GraphError(
            f"{path}: {name}{place} is {values[tuple(place)]}, too large for a whole number of type {values.dtype}. "
            "Number from 0, and store int64."
        )
    return values.astype(np.int64)
