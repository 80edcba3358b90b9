"""Nested lists of a Parquet table as arrays, without a Python object for each number."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from accord.datasets.readers._raw import check_label_text
from accord.errors import GraphError


class RowCells:
    """The cells of some rows of a table.

    Args:
        table: of pyarrow.
        names: of all columns of the file.
        shared: names and kinds that all rows share.
    """

    def __init__(self, table: Any, names: Sequence[str], shared: Mapping[str, Any]) -> None:
        self.names, self.shared = list(names), shared
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        self._columns = {name: column.chunk(0) if _is_chunked(column) else column for name, column in columns.items()}
        self._present = {name: ~np.asarray(column.is_null()) for name, column in self._columns.items()}
        self._nested = {name: _Nested(column) for name, column in self._columns.items() if _is_list(column.type)}

    def has(self, name: str, row: int) -> bool:
        """Whether a row has a value in a column."""
        return name in self._columns and bool(self._present[name][row])

    def value(self, name: str, row: int) -> Any:
        """A cell as Python has it."""
        return self._columns[name][row].as_py()

    def array(self, name: str, row: int, where: Path) -> np.ndarray:
        """A cell of nested lists as an array; text and gaps are possible in labels only.

        Args:
            name: of the column.
            row: of the table.
            where: names the row in messages.
        """
        nested = self._nested.get(name)
        if nested is None:
            raise GraphError(f"{where}: {name} has type {self._columns[name].type}, but lists are needed.")
        return nested.array(row, name, where)


class _Nested:
    """A column of lists, or of lists of lists: its values in one array, and where each row begins."""

    def __init__(self, column: Any) -> None:
        self.inner: np.ndarray | None = None  # where each inner list begins, for lists of lists
        self.outer, values = _flattened(column)
        self.odd = False  # whether an inner list is missing
        if _is_list(values.type):
            self.odd = bool(values.null_count)
            self.inner, values = _flattened(values)
        self.deeper = _is_list(values.type)
        types = import_module("pyarrow").types
        self.text = types.is_string(values.type) or types.is_large_string(values.type)
        self.gaps = ~np.asarray(values.is_valid()) if values.null_count else None
        kind = values.type
        numeric = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_null(kind)
        self.usable = (numeric or self.text) and not self.deeper
        if not self.usable or types.is_null(kind):
            self.values = np.zeros(len(values), np.int64)
        elif self.text:
            self.values = np.array(["" if cell is None else cell for cell in values.to_pylist()], dtype=object)
        else:
            filled = values.fill_null(False if types.is_boolean(kind) else 0) if values.null_count else values
            self.values = filled.to_numpy(zero_copy_only=False)
        self.kind = kind

    def array(self, row: int, name: str, where: Path) -> np.ndarray:
        if not self.usable or (self.text and name != "y"):
            raise GraphError(f"{where}: {name} holds values of type {self.kind}, but numbers are needed.")
        first, last = int(self.outer[row]), int(self.outer[row + 1])
        shape: tuple[int, ...] = (last - first,)
        if self.inner is not None:
            begins = self.inner[first : last + 1]
            widths = np.diff(begins)
            if self.odd or (len(widths) and (widths != widths[0]).any()):
                raise GraphError(f"{where}: {name} has rows of different lengths. Make them equal.")
            shape = (last - first, int(widths[0]) if len(widths) else 0)
            first, last = (int(begins[0]), int(begins[-1])) if len(begins) else (0, 0)
        values = self.values[first:last].copy()  # Arrow's memory must not be written to
        gaps = None if self.gaps is None else self.gaps[first:last]
        if gaps is not None and gaps.any():
            if name != "y":
                raise GraphError(f"{where}: {name} holds a null, but numbers are needed. Correct or remove it.")
            values = np.where(gaps, "" if self.text else -1, values)
        if self.text:
            for text in set(values.tolist()):
                check_label_text(text, str(where))
            values = values.astype(np.str_)
        return values.reshape(shape)


def _flattened(column: Any) -> tuple[np.ndarray, Any]:
    """Where each list begins, and the values of all lists."""
    if hasattr(column, "offsets"):
        offsets = np.asarray(column.offsets)
        return offsets - offsets[0], column.values.slice(offsets[0], offsets[-1] - offsets[0])
    width = column.type.list_size  # lists of a fixed size have no offsets
    return np.arange(len(column) + 1) * width, column.values.slice(column.offset * width, len(column) * width)


def _is_list(kind: Any) -> bool:
    types = import_module("pyarrow").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_chunked(column: Any) -> bool:
    """Whether `combine_chunks` gave several chunks, as it does for text beyond 2 GB; row groups are smaller."""
    return hasattr(column, "num_chunks")
