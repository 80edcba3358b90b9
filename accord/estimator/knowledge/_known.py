"""Known labels of a graph: a tensor, a list, a dictionary by node, or the labels that the graph itself has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InputTypeError
from accord.estimator.fitting._inputs import with_states
from accord.estimator.knowledge._places import Places
from accord.estimator.labelling._thresholds import state_of
from accord.graphs import TRAIN_MASK, labels_within

FREE = -1  # in place of a state: nothing is known
OWN_LABELS = "labels"  # as `known`: the labels that the graph itself has
FORMS = "Give a tensor [nodes] with -1 where nothing is known, or a dict {node: label}."


@dataclass(frozen=True)
class States:
    """States of a model, by number and by name."""

    num_states: int
    num_tasks: int
    names: Sequence[str] | None

    def of(self, key: object, option: str) -> int:
        """The state that a number or a name stands for."""
        return state_of(key, self.num_states, self.names, option)


def known_labels(given: Any, places: Places, states: States) -> Tensor:
    """Known states [tasks, nodes], -1 where nothing is known.

    Args:
        given: a tensor or array of states [nodes] or [nodes, tasks]; a list of labels, None where nothing is known; a
            dict {node: label}; for a model of several tasks a label is a list with one for each; or "labels": those
            of the graph, of a graph with a `train_mask` those in it.
        places: nodes of the graph.
        states: of the model.
    """
    if isinstance(given, str):
        given = own_labels(given, places.graph, places.where, states)
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu":
        given = torch.from_numpy(given.astype(np.int64))
    if isinstance(given, Tensor):
        return _of_tensor(given, places, states)
    if isinstance(given, Mapping):
        entries = [(places.node(key, "known"), label) for key, label in given.items()]
    elif isinstance(given, (Sequence, np.ndarray)):
        _check_length(len(given), places)
        entries = list(enumerate(given))
    else:
        raise InputTypeError(f"{places.where}: known is a {type(given).__name__}. {FORMS}")
    labels = torch.full((states.num_tasks, places.num_nodes), FREE)
    for node, label in entries:
        labels[:, node] = torch.tensor(_of_node(label, node, places, states))
    return labels


def own_labels(word: str, graph: Data, where: str, states: States) -> Tensor:
    """The labels that a graph itself has, numbered as in the model."""
    if word != OWN_LABELS:
        raise GraphError(f"{where}: known is the text {word[:80]!r}. {FORMS} {OWN_LABELS!r} takes the graph's own.")
    labels: Tensor | None = labels_within(with_states(graph, states.names), TRAIN_MASK, where).y
    if labels is None:
        raise GraphError(f"{where}: known is {OWN_LABELS!r}, but the graph has no labels y. Set them, or leave it out.")
    return labels


def _of_tensor(given: Tensor, places: Places, states: States) -> Tensor:
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise InputTypeError(f"{places.where}: known has dtype {given.dtype}, but states are whole numbers. {FORMS}")
    columns = given[:, None] if given.dim() == 1 else given
    wanted = [places.num_nodes] if states.num_tasks == 1 else [places.num_nodes, states.num_tasks]
    if columns.dim() != 2 or list(columns.shape) != [places.num_nodes, states.num_tasks]:
        raise GraphError(f"{places.where}: known has shape {list(given.shape)}, but {wanted} is needed. {FORMS}")
    labels = columns.long().cpu().t()
    wrong = ((labels < FREE) | (labels >= states.num_states)).nonzero()
    if len(wrong):
        task, node = wrong[0].tolist()
        raise GraphError(
            f"{places.where}: known is {int(labels[task, node])} at node {places.title(node)}, but states are 0 to "
            f"{states.num_states - 1}, and -1 where nothing is known. Correct it."
        )
    return labels


def _of_node(label: object, node: int, places: Places, states: States) -> list[int]:
    """The states of one node, one for each task."""
    if isinstance(label, (Tensor, np.ndarray)):
        label = label.tolist()
    several = isinstance(label, Sequence) and not isinstance(label, str)
    each: list[object] = list(label) if several else [label]  # type: ignore[call-overload]
    if not several and label in (None, FREE):
        each = [FREE] * states.num_tasks
    if len(each) != states.num_tasks:
        raise GraphError(
            f"{places.where}: known gives {len(each)} labels at node {places.title(node)}, but a node has "
            f"{states.num_tasks} (one for each task). Give a list, with -1 where nothing is known."
        )
    return [FREE if _is_free(one) else states.of(one, f"known, at node {places.title(node)},") for one in each]


def _is_free(label: object) -> bool:
    return label is None or (not isinstance(label, (str, bool)) and label == FREE)


def _check_length(count: int, places: Places) -> None:
    if count != places.num_nodes:
        raise GraphError(
            f"{places.where}: known has {count} entries, but the graph has {places.num_nodes} nodes. Give one for each "
            "node, or a dict {node: label}."
        )
