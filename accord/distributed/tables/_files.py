"""Folders of Parquet files: which rows a process reads, and columns as tensors."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from accord.errors import DataNotFoundError, GraphError

PATTERN = "*.parquet"
NOTHING: Mapping[str, int | None] = MappingProxyType({})


@dataclass(frozen=True)
class RowGroup:
    """Rows of one file that are read at once."""

    path: Path
    number: int  # in its file
    first: int  # number of its first row in the whole table
    offset: int  # number of its first row in its file
    rows: int
    reader: int  # the process that reads it


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table that this process reads, column by column."""

    columns: dict[str, Tensor]  # [rows], or [rows, width] of a column of lists
    number: Tensor  # [rows], in the whole table


@dataclass(frozen=True, eq=False)
class PartTable:
    """A table whose rows lie in several files of a folder; the order of rows is that of the files' names."""

    folder: Path
    names: tuple[str, ...]  # of all columns
    lists: frozenset[str]  # names of the columns of lists
    numbers: frozenset[str]  # names of the columns that hold numbers, in some file at least
    groups: tuple[RowGroup, ...]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return self.groups[-1].first + self.groups[-1].rows if self.groups else 0

    def chosen(self, names: Sequence[str], wanted: Collection[str] | None) -> list[str]:
        """Those columns that are wanted; None wants all, and a column of lists is always wanted."""
        return [name for name in names if wanted is None or name in wanted or name in self.lists]

    def readers(self, numbers: Tensor) -> Tensor:
        """Which processes read these rows."""
        starts = torch.tensor([group.first for group in self.groups])
        readers = torch.tensor([group.reader for group in self.groups])
        return readers[torch.searchsorted(starts, numbers, right=True) - 1]

    def read(self, names: Sequence[str], rank: int, whole: Mapping[str, int | None] = NOTHING) -> Rows:
        """Read some columns of this process's rows.

        Args:
            names: of the columns.
            rank: this process.
            whole: which of them hold whole numbers, and what a missing value stands for; None refuses it.
        """
        missing = [name for name in names if name not in self.names]
        if missing:
            raise GraphError(
                f"{self.folder}: has no column {missing[0]!r}, only {', '.join(self.names)}. Rename the column."
            )
        own = [group for group in self.groups if group.reader == rank]
        pieces = [_read(group, names, whole) for group in own]
        columns = {}
        for place, name in enumerate(names):
            parts = [piece[place] for piece in pieces]
            widths = {tuple(part.shape[1:]) for part in parts}
            if len(widths) > 1:
                raise GraphError(f"{self.folder}: column {name!r} has lists of different lengths. Make them equal.")
            columns[name] = torch.cat(parts) if parts else torch.empty(0, dtype=torch.long if name in whole else None)
        number = [torch.arange(group.first, group.first + group.rows) for group in own]
        return Rows(columns, torch.cat(number) if number else torch.empty(0, dtype=torch.long))


def open_table(folder: Path, ranks: int) -> PartTable:
    """Find the files of a table and divide its row groups among processes, in runs of about as many rows."""
    parquet = _parquet(folder)
    paths = sorted(folder.glob(PATTERN)) if folder.is_dir() else []
    if not paths:
        raise DataNotFoundError(
            f"{folder}: has no Parquet files. A graph in parts is a folder with nodes/part-0.parquet .. and "
            "edges/part-0.parquet ..; accord.distributed.write_parts writes one."
        )
    found: list[tuple[Path, int, int, int]] = []
    names: tuple[str, ...] | None = None
    lists: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    for path in paths:
        try:
            with parquet.ParquetFile(path) as file:
                own = tuple(file.schema_arrow.names)
                sizes = [file.metadata.row_group(n).num_rows for n in range(file.metadata.num_row_groups)]
                found += [(path, n, sum(sizes[:n]), rows) for n, rows in enumerate(sizes)]
                lists |= {one.name for one in file.schema_arrow if _is_list(one.type)}
                numbers |= {one.name for one in file.schema_arrow if _is_number(one.type)}
        except Exception as error:  # pyarrow raises many kinds of error on damaged files
            raise _unreadable(path, error) from error
        names = names or own
        if set(own) != set(names) or len(set(own)) != len(own):
            raise GraphError(
                f"{path}: has the columns {', '.join(own)}, but {paths[0].name} has {', '.join(names)}. Write all "
                "files of a table with the same columns, each once."
            )
    assert names is not None
    count, first, groups = max(sum(rows for *_, rows in found), 1), 0, []
    for path, number, offset, rows in found:
        reader = min((2 * first + rows) * ranks // (2 * count), ranks - 1)  # where its middle row falls
        groups.append(RowGroup(path, number, first, offset, rows, reader))
        first += rows
    return PartTable(folder, names, lists, numbers, tuple(groups))


def _read(group: RowGroup, names: Sequence[str], whole: Mapping[str, int | None]) -> list[Tensor]:
    parquet = _parquet(group.path)
    try:
        with parquet.ParquetFile(group.path) as file:
            table = file.read_row_group(group.number, columns=list(names))
    except Exception as error:
        raise _unreadable(group.path, error) from error
    columns = {name: table.column(name).combine_chunks() for name in names}
    return [
        _whole(column, group, name, whole[name]) if name in whole else _tensor(column, f"{group.path}: column {name!r}")
        for name, column in columns.items()
    ]


def _whole(column: Any, group: RowGroup, name: str, missing: int | None) -> Tensor:
    """A column of whole numbers as int64, exactly; floats count where each of them stands for one whole number."""
    where = f"{group.path}: column {name!r}"
    if not _is_number(column.type):
        raise GraphError(f"{where} has type {column.type}, but whole numbers are needed. Write it as int64.")
    empty = column.is_null().to_numpy(zero_copy_only=False)
    values = column.fill_null(0).to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        if values.dtype.kind == "f":
            empty = empty | np.isnan(values)
            exact = np.abs(values) < 2.0 ** (np.finfo(values.dtype).nmant + 1)  # from there on, two share one float
            bad = ~empty & ~(exact & (values == np.floor(values)))
        else:
            bad = values > np.iinfo(np.int64).max  # of uint64
    bad = bad | empty if missing is None else bad
    if bad.any():
        row = int(bad.argmax())
        held = "no value" if empty[row] else column[row].as_py()
        raise GraphError(
            f"{where}: row {group.offset + row} holds {held}, but a whole number is needed. Correct it, and write the "
            "column as int64: floats hold large numbers only roughly."
        )
    found = torch.from_numpy(np.where(empty, 0, values).astype(np.int64))
    return found if missing is None else found.masked_fill(torch.from_numpy(empty), missing)


def _tensor(column: Any, where: str) -> Tensor:
    """A column of numbers as float32, of lists of numbers as rows of float32."""
    types: Any = import_module("pyarrow").types
    kind = column.type
    if _is_list(kind):
        inside = column.flatten()
        if column.null_count or len(inside) % max(len(column), 1):
            raise GraphError(f"{where} has lists of different lengths, or without values. Make them equal.")
        if not types.is_fixed_size_list(kind) and len(column):
            lengths = np.diff(column.offsets.to_numpy())
            if lengths.min() != lengths.max():
                raise GraphError(f"{where} has lists of {lengths.min()} to {lengths.max()} numbers. Make them equal.")
        width = kind.list_size if types.is_fixed_size_list(kind) else len(inside) // max(len(column), 1)
        return _tensor(inside, where).reshape(len(column), width)
    if not (_is_number(kind) or types.is_boolean(kind)):
        raise GraphError(
            f"{where} has type {kind}, but numbers are needed. Write a column of 0 and 1 for each category, called "
            "column=category, or remove it."
        )
    if column.null_count:
        raise GraphError(f"{where} has {column.null_count} missing values. Fill them in.")
    return torch.from_numpy(column.to_numpy(zero_copy_only=False).astype(np.float32, copy=True))


def _is_list(kind: Any) -> bool:
    types: Any = import_module("pyarrow").types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_number(kind: Any) -> bool:
    types: Any = import_module("pyarrow").types
    return bool(types.is_integer(kind) or types.is_floating(kind))


def _parquet(path: Path) -> Any:
    try:
        return import_module("pyarrow.parquet")
    except ImportError as error:
        raise DataNotFoundError(
            f"{path}: reading Parquet needs the package pyarrow. Install it: pip install 'accord[tables]'."
        ) from error


def _unreadable(path: Path, error: Exception) -> GraphError:
    text = str(error).splitlines()
    reason = text[0][:200] if text else type(error).__name__
    return GraphError(f"{path}: cannot be read as a Parquet file ({reason}). Write it again.")
