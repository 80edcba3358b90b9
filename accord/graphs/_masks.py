"""Masks of nodes, as PyG's data sets have them: which labels are for training, for validation and for testing."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputTypeError
from accord.graphs._batch import GraphBatch
from accord.graphs._checks import check_tensor

TRAIN_MASK, VAL_MASK, TEST_MASK = "train_mask", "val_mask", "test_mask"
MASKS = (TRAIN_MASK, VAL_MASK, TEST_MASK)


def node_masks(graph: Data, where: str) -> dict[str, Tensor]:
    """The masks that a graph has, by name; masks that cannot be used, or that overlap, are refused.

    Args:
        graph: with `x`.
        where: the call and the graph, for messages.
    """
    masks = {name: _check_mask(graph[name], name, len(graph.x), where) for name in MASKS if graph.get(name) is not None}
    found = list(masks)
    for first, second in ((a, b) for place, a in enumerate(found) for b in found[place + 1 :]):
        both = int((masks[first] & masks[second]).sum())
        if both:
            raise GraphError(
                f"{where}: {both} nodes are in both {first} and {second}. A score counts only on labels that were not "
                f"used for anything else. Take them out of one: data.{second} &= ~data.{first}."
            )
    return masks


def labels_within(graph: Data, name: str, where: str) -> Data:
    """The graph with the labels that a mask selects; all others are missing (-1).

    If the graph has other masks only, the labels outside all of them remain. A graph without masks is returned
    unchanged.

    Args:
        graph: with `x`, and labels `y` [nodes] or [nodes, tasks] or none.
        name: one of `MASKS`.
        where: the call and the graph, for messages.
    """
    if all(graph.get(mask) is None for mask in MASKS):
        return graph
    GraphBatch.collate([graph])  # refuses a graph that cannot be used before its labels are read
    masks = node_masks(graph, where)
    if graph.y is None:
        return graph
    kept = masks[name] if name in masks else ~torch.stack(list(masks.values())).any(0)
    hidden = ~kept.to(graph.y.device)
    masked = copy.copy(graph)
    masked.y = graph.y.masked_fill(hidden if graph.y.dim() == 1 else hidden[:, None], -1)
    return masked


def training_nodes(graph: Data) -> Data:
    """Features (and `node_id`) of the nodes in `train_mask`; the graph itself if it has no such mask."""
    mask = graph.get(TRAIN_MASK)
    if mask is None:
        return graph
    rows = Data(x=graph.x[mask.to(graph.x.device)])
    if "node_id" in graph:
        rows.node_id = graph.node_id[mask.to(graph.node_id.device)]
    return rows


def has_labels(graph: Data) -> bool:
    """Whether any label of a graph is known."""
    return graph.y is not None and bool((graph.y >= 0).any())


def have_mask(graphs: Sequence[Data], name: str) -> bool:
    """Whether a mask of any of these graphs selects a labelled node."""
    return any(graph.get(name) is not None and has_labels(labels_within(graph, name, name)) for graph in graphs)


def _check_mask(mask: object, name: str, num_nodes: int, where: str) -> Tensor:
    values = check_tensor(mask, name, where)
    if values.dtype != torch.bool:
        raise InputTypeError(
            f"{where}: {name} has dtype {values.dtype}, but True or False for each node is needed. Convert 0 and 1 "
            f"with .bool(); of node numbers, make a mask with torch_geometric.utils.index_to_mask."
        )
    if values.dim() == 2:
        raise GraphError(
            f"{where}: {name} has shape {list(values.shape)}: it holds {values.shape[1]} splits. Choose one for each "
            f"fit: data.{name} = data.{name}[:, 0], and the same for the other masks."
        )
    if values.shape != (num_nodes,):
        raise GraphError(
            f"{where}: {name} has shape {list(values.shape)}, but one entry for each of {num_nodes} nodes is needed. "
            f"Correct it, or remove it: del data.{name}."
        )
    return values
