"""A graph as its file has it, and how it becomes a PyG `Data` once it is known what its labels mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.graphs import check_edge_index, check_features

MAX_STATES = 1_000_000  # a larger number is no state but a slip: an id, or a measurement
BIGGEST = 2.0**62  # whole number that float and int64 both hold
SHOWN_NAMES = 12  # in messages; a list of hundreds helps nobody


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Arrays of one file; labels are whole numbers, or text that may stand for numbers or for names."""

    path: Path
    x: np.ndarray  # [nodes, features]
    edge_index: np.ndarray  # [2, columns]
    labels: np.ndarray | None = None  # [nodes] or [nodes, tasks], int64 (-1 = missing) or str ("" = missing)
    edge_attr: np.ndarray | None = None  # [columns, attributes]
    node_id: np.ndarray | None = None  # [nodes]: who a node is, across graphs
    node_names: Sequence[str] | None = None  # what the file calls its nodes
    task_names: Sequence[str] | None = None  # what the file calls its columns of labels
    lines: Sequence[int] | None = None  # line of each node in its file

    def place(self, node: int) -> str:
        """Where a node is written, for messages."""
        return f"{self.path}, node {node}" if self.lines is None else f"{self.path}, line {self.lines[node]}"

    def to_data(self, label_names: Sequence[str] | None, with_labels: bool = True) -> Data:
        """Check everything and turn labels into states.

        Args:
            label_names: names of the states; None where labels are numbers.
            with_labels: False leaves labels away, whatever they are.
        """
        where = str(self.path)
        x = check_features(torch.from_numpy(np.ascontiguousarray(self.x, dtype=np.float32)), len(self.x), where)
        index = check_edge_index(torch.from_numpy(np.ascontiguousarray(self.edge_index)), len(x), where)
        data = Data(x=x, edge_index=index)
        if with_labels and self.labels is not None:
            data.y = torch.from_numpy(self._states(label_names))
        if self.edge_attr is not None:
            data.edge_attr = torch.from_numpy(self._edge_attributes(index.shape[1]))
        if self.node_id is not None:
            self._check_rows(self.node_id, "node_id")
            data.node_id = torch.from_numpy(self.node_id)
        if self.node_names is not None:
            data.node_names = list(self.node_names)
        if self.task_names is not None:
            data.task_names = list(self.task_names)
        return data

    def _states(self, label_names: Sequence[str] | None) -> np.ndarray:
        labels = self.labels
        assert labels is not None  # the caller asked
        self._check_rows(labels, "labels")
        states = label_states(labels, label_names)
        if isinstance(states, np.ndarray):
            limit = MAX_STATES if label_names is None else len(label_names)
            bad = np.argwhere((states < -1) | (states >= limit))
            if len(bad):
                slip = f"states are numbered from 0, at most to {limit - 1}"
                allowed = slip if label_names is None else f"there are states 0 to {limit - 1}"
                raise GraphError(
                    f"{self.place(int(bad[0][0]))}: the label is {labels[tuple(bad[0])]}, but {allowed}, and -1 stands "
                    "for a missing label. Correct it, or leave it empty."
                )
            return states
        node = int(np.argwhere(labels == states)[0][0])
        known = "whole numbers" if label_names is None else list_names(label_names)
        raise GraphError(
            f"{self.place(node)}: the label {states!r} is unknown. Known from training: {known}. Correct the name, or "
            "leave the label empty."
        )

    def _edge_attributes(self, columns: int) -> np.ndarray:
        assert self.edge_attr is not None
        rows = self.edge_attr[:, None] if self.edge_attr.ndim == 1 else self.edge_attr
        if rows.ndim != 2 or len(rows) != columns:
            raise GraphError(
                f"{self.path}: edge_attr has shape {list(self.edge_attr.shape)}, but one row for each of the {columns} "
                "columns of edge_index is needed."
            )
        if not np.isfinite(rows).all():
            raise GraphError(f"{self.path}: edge_attr holds a NaN or infinity. Fill in what is missing.")
        return np.ascontiguousarray(rows, dtype=np.float32)

    def _check_rows(self, values: np.ndarray, name: str) -> None:
        if values.ndim not in ((1, 2) if name == "labels" else (1,)) or len(values) != len(self.x):
            raise GraphError(
                f"{self.path}: {name} have shape {list(values.shape)}, but one entry for each of {len(self.x)} nodes "
                "is needed."
            )


def label_states(labels: np.ndarray, label_names: Sequence[str] | None) -> np.ndarray | str:
    """States of labels, or the first label that is none.

    Whole numbers are states already; text is looked up among the names, or read as a number where there are none.
    """
    if labels.dtype.kind != "U":
        return labels.astype(np.int64)
    if label_names is None:
        return whole_numbers(labels)
    table = {"": -1} | {name: state for state, name in enumerate(label_names)}
    distinct, inverse = np.unique(labels, return_inverse=True)
    unknown = [str(name) for name in distinct if str(name) not in table]
    if unknown:
        return unknown[0]
    states = np.array([table[str(name)] for name in distinct], dtype=np.int64)
    return states[inverse].reshape(labels.shape)


def whole_numbers(labels: np.ndarray) -> np.ndarray | str:
    """Text as whole numbers ("2", "2.0"; "" is -1), or the first text that is none.

    Numbers that are far too large ("1e30") are cut to what an integer holds, which is still no state.
    """
    distinct, inverse = np.unique(labels, return_inverse=True)
    numbers = []
    for text in distinct:
        try:
            number = float(text) if text else -1.0
        except ValueError:
            return str(text)
        if not number.is_integer():
            return str(text)
        numbers.append(int(np.clip(number, -BIGGEST, BIGGEST)))
    return np.array(numbers, dtype=np.int64)[inverse].reshape(labels.shape)


def find_label_names(graphs: Sequence[RawGraph]) -> list[str] | None:
    """Names of the states, sorted; None where every label is a whole number, or there is none."""
    texts = [graph.labels for graph in graphs if graph.labels is not None and graph.labels.dtype.kind == "U"]
    if all(isinstance(whole_numbers(labels), np.ndarray) for labels in texts):
        return None
    numbers = [graph.labels for graph in graphs if graph.labels is not None and graph.labels.dtype.kind != "U"]
    found = {str(name) for labels in texts for name in np.unique(labels)}
    found |= {str(number) for labels in numbers for number in np.unique(labels) if number >= 0}
    return sorted(found - {""})


def list_names(names: Sequence[str]) -> str:
    """Names in one line, cut short where there are many."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
