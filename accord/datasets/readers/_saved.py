"""Graphs that torch has saved: PyG `Data`, `HeteroData`, or a list of them. Only tensors and plain values are read."""

import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.data import storage as storages
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr

from accord.datasets._sources import check_memory
from accord.datasets.readers._arrays import GRAPH_ARRAYS, LISTS, assemble
from accord.datasets.readers._raw import RawGraph
from accord.errors import AccordError, GraphError
from accord.graphs.features._columns import CATEGORY, NUMBER

SAFE = [Data, HeteroData, DataEdgeAttr, DataTensorAttr]
SAFE += [getattr(storages, name) for name in ("BaseStorage", "NodeStorage", "EdgeStorage", "GlobalStorage")]
ENTRY_BYTES = 16  # of a number while it is converted and checked
EDGE_TYPE = "type"  # column that names the edge types of a HeteroData
REMEDY = "Save the graph with torch.save(data, path), or write it with accord.datasets.write_graph."


def read_saved(path: Path) -> list[RawGraph]:
    """Read the graphs of a .pt file."""
    content = load_plain(path)
    if isinstance(content, (list, tuple)) and content and all(isinstance(part, (Data, HeteroData)) for part in content):
        return [saved_graph(path, part, f"{path.name} {number}") for number, part in enumerate(content)]
    if isinstance(content, (Data, HeteroData)):
        return [saved_graph(path, content, None)]
    raise GraphError(
        f"{path}: holds a {type(content).__name__}, not a PyG Data or a list of them. A data set is saved by "
        "torch.save(list(dataset), path)."
    )


def load_plain(path: Path) -> Any:
    """What torch has saved in a file, if it is made of tensors, plain values and PyG's graphs."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError) as error:
        raise GraphError(f"{path}: cannot be read as a file of torch.save ({error}). {REMEDY}") from error
    check_memory(2 * size, f"{path}: reading it")
    # On leaving, torch forgets all classes that it was given here, also those that PyG has registered for itself.
    registered = torch.serialization.get_safe_globals()
    ours = [one for one in SAFE if one not in registered]
    try:
        with warnings.catch_warnings(), torch.serialization.safe_globals(ours):
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except (AccordError, MemoryError):
        raise
    except Exception as error:  # unpickling raises any kind of error on damaged files
        text = str(error).splitlines()
        refused = next((line for line in text if "GLOBAL" in line or "global" in line), text[0] if text else "")
        raise GraphError(
            f"{path}: cannot be read with weights_only=True, which runs no code ({refused.strip()[:200]}). {REMEDY}"
        ) from error


def _values(path: Path, store: object) -> dict[str, Any]:
    """The content of a PyG storage, without calling anything of it."""
    found = getattr(store, "__dict__", {}).get("_mapping")
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise GraphError(f"{path}: the saved graph is damaged. {REMEDY}")
    return found


def saved_graph(path: Path, graph: Data | HeteroData, name: str | None) -> RawGraph:
    """The arrays of a PyG graph; `path` is where it is from, for messages."""
    held = graph.__dict__
    if isinstance(graph, HeteroData):
        values = _one_type(path, held.get("_node_store_dict"), held.get("_edge_store_dict"))
    else:
        values = _values(path, held.get("_store"))
    arrays = {key: _array(path, key, values[key]) for key in GRAPH_ARRAYS if values.get(key) is not None}
    if "edge_index" not in arrays and "x" in arrays and "adj_t" not in values:
        arrays["edge_index"] = np.empty((2, 0), np.int64)
    raw = assemble(path, arrays, list(values), {key: values[key] for key in LISTS if values.get(key) is not None}, name)
    names = values.get("label_names")
    if raw.labels is None or raw.labels.dtype.kind == "U" or not isinstance(names, (list, tuple)):
        return raw
    return _with_names(path, raw, names)


def _with_names(path: Path, raw: RawGraph, names: Sequence[object]) -> RawGraph:
    """The graph with the names of its labels in place of their numbers."""
    assert raw.labels is not None
    if not all(isinstance(name, str) for name in names) or (
        raw.labels.size and not -1 <= raw.labels.min() <= raw.labels.max() < len(names)
    ):
        raise GraphError(f"{path}: label_names do not fit the labels y. Name each state once, as text.")
    table = np.array([*map(str, names), ""], dtype=np.str_)
    return RawGraph(**(vars(raw) | {"labels": table[raw.labels]}))


def _array(path: Path, name: str, value: object) -> np.ndarray:
    if not isinstance(value, Tensor) or value.layout != torch.strided or value.is_quantized:
        kind = str(value.layout) if isinstance(value, Tensor) else type(value).__name__
        raise GraphError(f"{path}: {name} is a {kind}, but a dense tensor is needed. Convert it with .to_dense().")
    # Checked before anything is copied: a saved view may claim any size.
    check_memory(ENTRY_BYTES * value.numel(), f"{path}: {name}, of shape {list(value.shape)},")
    value = value.detach()
    if name == "y" and value.dim() == 2 and value.shape[1] == 1:
        value = value[:, 0]
    if value.dtype in (torch.bfloat16, torch.float16):
        value = value.float()
    return np.ascontiguousarray(value.numpy())


def _one_type(path: Path, nodes: object, edges: object) -> dict[str, Any]:
    """A heterogeneous graph with one type of nodes as the values of an ordinary one; edge types become attributes."""
    if not isinstance(nodes, Mapping) or not isinstance(edges, Mapping):
        raise GraphError(f"{path}: the saved graph is damaged. {REMEDY}")
    if len(nodes) != 1:
        listed = ", ".join(map(str, list(nodes)[:5]))
        raise GraphError(
            f"{path}: has {len(nodes)} types of nodes ({listed}), but one is needed. Keep the type to be labelled, "
            "joined where it shares a neighbour of another type (torch_geometric.transforms.AddMetaPaths); or give all "
            "types the same features and use HeteroData.to_homogeneous()."
        )
    values = dict(_values(path, next(iter(nodes.values()))))
    stores = {key: _values(path, store) for key, store in edges.items()}
    stores = {key: store for key, store in stores.items() if isinstance(store.get("edge_index"), Tensor)}
    names = [" ".join(key[1:2]) if isinstance(key, tuple) and len(key) == 3 else str(key) for key in stores]
    indices = [store["edge_index"] for store in stores.values()]
    for index in indices:
        if index.dim() != 2 or index.shape[0] != 2 or index.layout != torch.strided:
            raise GraphError(f"{path}: an edge_index has shape {list(index.shape)}, but [2, edges] is needed.")
        check_memory(ENTRY_BYTES * index.numel(), f"{path}: edge_index, of shape {list(index.shape)},")
    counts = [int(index.shape[1]) for index in indices]
    if not stores:
        return values | {"edge_index": torch.empty(2, 0, dtype=torch.long)}
    types = np.repeat(np.eye(len(stores), dtype=np.float32), counts, axis=0)
    widths = {_width(store.get("edge_attr")) for store in stores.values()}
    if len(widths) > 1 or None in widths:
        raise GraphError(
            f"{path}: edge types have edge_attr of different widths. Give all the same attributes, or remove them."
        )
    width = int(widths.pop() or 0)
    own = (
        [_array(path, "edge_attr", s["edge_attr"]).reshape(n, -1) for s, n in zip(stores.values(), counts, strict=True)]
        if width
        else []
    )
    values |= {
        "edge_index": torch.cat(indices, 1),
        "edge_attr": torch.from_numpy(np.concatenate([types, np.concatenate(own)], 1) if own else types),
        "edge_names": [f"{EDGE_TYPE}={name}" for name in names] + [f"a{place}" for place in range(width)],
        "edge_kinds": [CATEGORY] * len(names) + [NUMBER] * width,
    }
    return values


def _width(attributes: object) -> int | None:
    """How many attributes an edge has; 0 without, None if they cannot be used."""
    if attributes is None:
        return 0
    if not isinstance(attributes, Tensor) or attributes.dim() not in (1, 2):
        return None
    return 1 if attributes.dim() == 1 else int(attributes.shape[1])
