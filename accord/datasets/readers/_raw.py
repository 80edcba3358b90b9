"""The arrays of one graph file, and their conversion to a PyG `Data` once the meaning of the labels is known."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from accord.datasets._sources import reading
from accord.errors import GraphError
from accord.graphs import EDGES, NODES, columns_of
from accord.graphs._checks import check_edge_index, check_features

MAX_STATES = 1_000_000  # a larger label is a mistake: an id, or a measurement
MAX_INTEGER = 2.0**62  # float and int64 both hold it
SHOWN_NAMES = 12  # names listed in a message
SHOWN_CHARACTERS = 80  # of a value in a message
LONGEST_LABEL = 1000  # characters; a longer label is a mistake, such as a quote that is never closed
NOT_IN_NUMBERS = re.compile(r"[^0-9eE+\-.\s]")  # float() also reads 1_0, inf, nan and digits of other scripts


@dataclass(frozen=True, eq=False)
class RawGraph:
    """Arrays of one file. Labels are whole numbers, or text that stands for numbers or for names."""

    path: Path
    x: np.ndarray  # [nodes, features]
    edge_index: np.ndarray  # [2, columns]
    labels: np.ndarray | None = None  # [nodes] or [nodes, tasks], int64 (-1 = missing) or str ("" = missing)
    edge_attr: np.ndarray | None = None  # [columns, attributes]
    node_id: np.ndarray | None = None  # [nodes]: identifies a node across graphs
    feature_names: Sequence[str] | None = None  # names of the columns of x
    feature_kinds: Sequence[str] | None = None  # number, category or missing (`accord.graphs.Columns`)
    edge_names: Sequence[str] | None = None  # names of the columns of edge_attr
    edge_kinds: Sequence[str] | None = None
    node_names: Sequence[str] | None = None  # names of the nodes
    task_names: Sequence[str] | None = None  # names of the columns of labels
    lines: Sequence[int] | None = None  # line of each node in the file
    unit: str = "line"  # what `lines` counts
    name: str | None = None  # of the graph, if a file has several
    masks: Mapping[str, np.ndarray] = field(default_factory=dict)  # by name: [nodes], 0 and 1 or True and False
    tokens: Sequence[str] | None = None  # words of the nodes

    def place(self, node: int) -> str:
        """Where a node stands in the file, for error messages."""
        return f"{self.path}, node {node}" if self.lines is None else f"{self.path}, {self.unit} {self.lines[node]}"

    def to_data(self, label_names: Sequence[str] | None, with_labels: bool = True) -> Data:
        """Check all arrays and turn labels into states.

        Args:
            label_names: names of the states; None where labels are numbers.
            with_labels: False leaves the labels out.
        """
        with reading(self.path):
            return self._to_data(label_names, with_labels)

    def _to_data(self, label_names: Sequence[str] | None, with_labels: bool) -> Data:
        where = str(self.path)
        x = check_features(torch.from_numpy(self._single(self.x, "x")), len(self.x), where)
        index = check_edge_index(torch.from_numpy(np.ascontiguousarray(self.edge_index)), len(x), where)
        data = Data(x=x, edge_index=index)
        if with_labels and self.labels is not None:
            data.y = torch.from_numpy(self._states(label_names))
        if self.edge_attr is not None:
            data.edge_attr = torch.from_numpy(self._edge_attributes(index.shape[1]))
        if self.node_id is not None:
            self._check_rows(self.node_id, "node_id")
            data.node_id = torch.from_numpy(self.node_id)
        for name, values in self.masks.items():
            data[name] = torch.from_numpy(self._mask(name, values))
        if self.feature_names is not None:
            data.feature_names = check_feature_names(self.feature_names, x.shape[1], where)
        if self.edge_names is not None and self.edge_attr is not None:
            data.edge_names = check_feature_names(self.edge_names, data.edge_attr.shape[1], where, "edge_names")
        for key, kinds, wanted in (
            ("feature_kinds", self.feature_kinds, "feature_names" in data),
            ("edge_kinds", self.edge_kinds, "edge_names" in data),
        ):
            if kinds is not None and wanted:
                data[key] = check_texts(kinds, key, where)
        for place in (NODES, EDGES):
            columns_of(data, place, where)  # refuses kinds that do not exist or do not fit
        if self.node_names is not None:
            data.node_names = self._list("node_names", self.node_names, len(x))
        if self.tokens is not None:
            data.tokens = self._list("tokens", self.tokens, len(x))
        if self.task_names is not None:
            tasks = 1 if self.labels is None or self.labels.ndim == 1 else self.labels.shape[1]
            data.task_names = self._list("task_names", self.task_names, None if self.labels is None else tasks)
        data.graph_name = self.name or (self.path.parent.name if self.lines is not None else self.path.name)
        return data

    def _list(self, name: str, values: object, count: int | None) -> list[str]:
        """Text, one entry for each node or task."""
        found = check_texts(values, name, str(self.path))
        if count is not None and len(found) != count:
            raise GraphError(f"{self.path}: there are {len(found)} {name} for {count}. Give one for each.")
        return found

    def _states(self, label_names: Sequence[str] | None) -> np.ndarray:
        labels = self.labels
        assert labels is not None  # the caller asked
        self._check_rows(labels, "labels")
        for problem in self.bad_labels(label_names):
            raise GraphError(problem)
        states = label_states(labels, label_names)
        assert isinstance(states, np.ndarray)  # no label is bad
        return states

    def bad_labels(self, label_names: Sequence[str] | None) -> Iterator[str]:
        """What is wrong with labels, node by node; they have the right shape."""
        labels = self.labels
        if labels is None:
            return
        states = label_states(labels, label_names)
        if isinstance(states, str):
            known = "whole numbers" if label_names is None else list_names(label_names)
            unknown = {
                text
                for text in np.unique(labels).tolist()
                if isinstance(label_states(np.array([text]), label_names), str)
            }
            for node, *task in np.argwhere(np.isin(labels, sorted(unknown))).tolist():
                yield (
                    f"{self.place(node)}: the label {str(labels[(node, *task)])!r} is unknown. Known from training: "
                    f"{known}. Correct the name, or leave the label empty."
                )
            return
        limit = MAX_STATES if label_names is None else len(label_names)
        numbered = f"states are numbered from 0, at most to {limit - 1}"
        allowed = numbered if label_names is None else f"there are states 0 to {limit - 1}"
        for node, *task in np.argwhere((states < -1) | (states >= limit)).tolist():
            yield (
                f"{self.place(node)}: the label is {labels[(node, *task)]}, but {allowed}, and -1 stands for a missing "
                "label. Correct it, or leave it empty."
            )

    def _mask(self, name: str, values: np.ndarray) -> np.ndarray:
        """True or False for each node; 0 and 1 stand for them."""
        if values.ndim == 2:
            raise GraphError(
                f"{self.path}: {name} holds {values.shape[1]} splits. Write the file with one of them: {name}[:, 0], "
                "and the same for the other masks."
            )
        self._check_rows(values, name)
        bad = np.flatnonzero((values != 0) & (values != 1)) if values.dtype.kind in "biuf" else np.arange(1)
        if len(bad) and len(values):
            raise GraphError(
                f"{self.place(int(bad[0]))}: {name} is {values[bad[0]]!s:.{SHOWN_CHARACTERS}}, but 0 or 1 (or true or "
                "false) is needed. Correct it."
            )
        return np.asarray(values == 1)

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
        return self._single(rows, "edge_attr")

    def _single(self, values: np.ndarray, name: str) -> np.ndarray:
        """Numbers [rows, columns] as float32; a finite number that float32 cannot hold is refused."""
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(values, dtype=np.float32)
        if values.dtype.kind == "f" and values.dtype.itemsize > single.dtype.itemsize:
            lost = np.isinf(single) & np.isfinite(values)
            if lost.any():
                row, column = np.argwhere(lost)[0].tolist()
                raise GraphError(
                    f"{self.path}: {name} holds {values[row, column]} in row {row}, column {column}, but numbers are "
                    f"read as float32, which ends at {np.finfo(np.float32).max:.4g}. Rescale the column, e.g. by its "
                    "logarithm."
                )
        return single

    def _check_rows(self, values: np.ndarray, name: str) -> None:
        if values.ndim not in ((1, 2) if name == "labels" else (1,)) or len(values) != len(self.x):
            raise GraphError(
                f"{self.path}: {name} have shape {list(values.shape)}, but one entry for each of {len(self.x)} nodes "
                "is needed."
            )


def label_states(labels: np.ndarray, label_names: Sequence[str] | None) -> np.ndarray | str:
    """The states of the labels, or the first label that names no state.

    Whole numbers are states. Text is looked up in `label_names`, or read as a number if there are no names.
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
    """Text as whole numbers ("2", "2.0"; "" is -1), or the first text that is not a whole number.

    Numbers that int64 cannot hold ("1e30") are clipped; the result is still too large for a state.
    """
    distinct, inverse = np.unique(labels, return_inverse=True)
    numbers = []
    for text in distinct:
        number = parse_number(str(text)) if text else -1.0
        if number is None or not number.is_integer():
            return str(text)
        numbers.append(int(np.clip(number, -MAX_INTEGER, MAX_INTEGER)))
    return np.array(numbers, dtype=np.int64)[inverse].reshape(labels.shape)


def parse_number(text: str) -> float | None:
    """A decimal number as files write it: ASCII digits, no underscores, no names such as inf; None for other text."""
    if NOT_IN_NUMBERS.search(text):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def check_label_text(text: str, where: str) -> None:
    """Refuse text that cannot be stored as a label: numpy drops a NUL at the end, and pads all to the longest."""
    if "\0" in text:
        raise GraphError(f"{where}: the label {text[:SHOWN_CHARACTERS]!r} contains a NUL character. Remove it.")
    if len(text) > LONGEST_LABEL:
        raise GraphError(
            f"{where}: the label {text[:SHOWN_CHARACTERS]!r}... has {len(text)} characters, but at most "
            f"{LONGEST_LABEL} are allowed. Shorten it; in a csv file, look for a quote that is not closed."
        )


def find_label_names(graphs: Sequence[RawGraph]) -> list[str] | None:
    """Names of the states, sorted; None if every label is a whole number, or no graph has labels."""
    texts = [graph.labels for graph in graphs if graph.labels is not None and graph.labels.dtype.kind == "U"]
    if all(isinstance(whole_numbers(labels), np.ndarray) for labels in texts):
        return None
    numbers = [graph.labels for graph in graphs if graph.labels is not None and graph.labels.dtype.kind != "U"]
    found = {str(name) for labels in texts for name in np.unique(labels)}
    found |= {str(number) for labels in numbers for number in np.unique(labels) if number >= 0}
    return sorted(found - {""})


def check_feature_names(names: object, num_columns: int, where: str, key: str = "feature_names") -> list[str]:
    """Return the names, stripped, if there is one for each column and no two are equal."""
    column, what = ("x", "feature") if key == "feature_names" else ("edge_attr", "edge attribute")
    found = check_texts(names, key, where)
    if len(found) != num_columns:
        raise GraphError(
            f"{where}: there are {len(found)} {key} for {num_columns} {what}s. Give one for each column of {column}."
        )
    repeated = first_repeated(found)
    if repeated is not None:
        raise GraphError(f"{where}: the {what} name {repeated!r} occurs twice. Rename one of the two.")
    for name in found:
        if not name or "\0" in name:
            raise GraphError(f"{where}: the {what} name {name!r} is empty or contains a NUL character. Rename it.")
    return found


def check_texts(values: object, name: str, where: str) -> list[str]:
    """Return a list of strings, stripped."""
    given = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(text, str) for text in given):
        raise GraphError(f"{where}: {name} must be a list of strings.")
    # Interned: thousands of graphs with the same wide header then share the text.
    return [sys.intern(str(text).strip()) for text in given]


def first_repeated(names: Sequence[str]) -> str | None:
    """The first name that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def list_names(names: Sequence[str]) -> str:
    """Names in one line; a long list is cut."""
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
