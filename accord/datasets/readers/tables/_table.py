"""Tables as files hold them: csv, compressed csv, and Parquet. Every cell is text; numbers of Parquet stay numbers."""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np

from accord.datasets._sources import TEXT_GROWTH, check_memory, check_regular_file, check_text_file
from accord.datasets.readers._findings import Findings, Unreadable
from accord.datasets.readers._raw import first_repeated
from accord.errors import DataNotFoundError, GraphError

CSV, PACKED, PARQUET = SUFFIXES = (".csv", ".csv.gz", ".parquet")
MOST_PACKED = 2**32  # bytes of a compressed file once it is unpacked
CHUNK = 2**24  # bytes that are unpacked at a time
EXACT = 2.0**53  # whole numbers up to this are exact as floats
PARQUET_ROW_BYTES = 64  # of one value as Python object


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of a table, and where each row is found in its file."""

    path: Path
    columns: Mapping[str, Sequence[str]]  # text, by name; a missing value is empty
    lines: Sequence[int]
    unit: str = "line"  # what `lines` counts
    numbers: dict[str, np.ndarray] = field(default_factory=dict)  # columns of numbers, NaN where missing; also in text

    @property
    def header(self) -> list[str]:
        """The names of all columns."""
        return list(self.columns)

    def __len__(self) -> int:
        return len(self.lines)

    def text(self, name: str) -> list[str]:
        """The cells of one column, stripped."""
        return [cell.strip() for cell in self.columns[name]]

    def place(self, row: int) -> str:
        """File and row, for messages."""
        return f"{self.path}, {self.unit} {self.lines[row]}"


def find_table(folder: Path, stem: str, named: str | None = None) -> Path | None:
    """The file of a table: as a mapping names it, or nodes.csv and the like; None if there is none."""
    if named is not None:
        return folder / named
    found = [folder / f"{stem}{suffix}" for suffix in SUFFIXES if (folder / f"{stem}{suffix}").exists()]
    if len(found) > 1:
        raise GraphError(
            f"{folder}: has {found[0].name} and {found[1].name}, and both could be the table of {stem}. Remove one."
        )
    return found[0] if found else None


def read_table(path: Path, findings: Findings) -> Table:
    """Read a table whose columns have names; rows that cannot be used are reported and left out."""
    if path.name.endswith(PARQUET):
        return _read_parquet(path)
    if not path.name.endswith((CSV, PACKED)):
        raise GraphError(f"{path}: tables are not read from such files. Give {', '.join(SUFFIXES)}.")
    header, rows, lines = _read_csv(path, findings)
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    return Table(path, dict(zip(header, columns, strict=True)), lines)


def _read_csv(path: Path, findings: Findings) -> tuple[list[str], list[list[str]], list[int]]:
    """The header, the rows below it that have a cell for each column, and their line numbers."""
    read: list[tuple[list[str], int]] = []
    try:
        with _open_text(path) as file:
            reader = csv.reader(_without_nul(path, file, findings), strict=True)
            read.extend((row, reader.line_num) for row in reader if row)
    except UnicodeDecodeError as error:
        raise GraphError(f"{path}: is not text in UTF-8 ({error}). Save it again in UTF-8.") from error
    except csv.Error as error:
        line = read[-1][1] + 1 if read else 1
        raise GraphError(
            f"{path}, line {line}: this line, or one after it, cannot be read as csv ({error}). Close every quote, and "
            "write a quote inside quotes twice."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise GraphError(f"{path}: cannot be unpacked ({error}). Compress it again with gzip.") from error
    if not read:
        raise GraphError(f"{path}: is empty. Its first line must name the columns.")
    header = [name.strip() for name in read[0][0]]
    _check_header(f"{path}, line 1", header, findings)
    rows, lines = [], []
    for row, line in read[1:]:
        if len(row) == len(header):
            rows.append(row)
            lines.append(line)
        else:
            findings.problem(
                f"{path}, line {line}: has {len(row)} cells, but the header names {len(header)} columns. Complete the "
                "line; text with commas in it needs quotes."
            )
    return header, rows, lines


def _open_text(path: Path) -> IO[str]:
    if not path.name.endswith(PACKED):
        check_text_file(path)
        return path.open(newline="", encoding="utf-8-sig")
    _check_packed(path)
    return gzip.open(path, "rt", newline="", encoding="utf-8-sig")


def _check_packed(path: Path) -> None:
    """Refuse a compressed file that does not fit into memory; a few bytes may stand for a line of any length."""
    check_regular_file(path)
    size = 0
    with gzip.open(path, "rb") as file:
        while piece := file.read(CHUNK):
            size += len(piece)
            check_memory(TEXT_GROWTH * size, f"{path}: reading it")
            if size > MOST_PACKED:
                raise GraphError(f"{path}: is larger than {MOST_PACKED / 1e9:.0f} GB once unpacked. Divide the table.")


def _check_header(where: str, header: list[str], findings: Findings) -> None:
    if "" in header:
        findings.problem(
            f"{where}: column {header.index('') + 1} has no name. Name it, or remove it: many programs write an "
            "unnamed column of row numbers."
        )
        raise Unreadable
    twice = first_repeated(header)
    if twice is not None:
        findings.problem(f"{where}: the column name {twice!r} occurs twice. Rename one of the two.")
        raise Unreadable


def _without_nul(path: Path, lines: Iterable[str], findings: Findings) -> Iterator[str]:
    """The lines of a file; numpy drops a NUL at the end of text, so names that differ would become equal."""
    for number, line in enumerate(lines, 1):
        if "\0" in line:
            findings.problem(f"{path}, line {number}: contains a NUL character. Remove it, or save the file as text.")
            line = line.replace("\0", "")
        yield line


def _read_parquet(path: Path) -> Table:
    """Read a Parquet file; null and NaN are missing values."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise DataNotFoundError(
            f"{path}: reading Parquet needs the package pyarrow. Install it: pip install 'accord[tables]'."
        ) from error
    check_regular_file(path)
    try:
        with path.open("rb") as file:
            opened = parquet.ParquetFile(file)
            described = opened.metadata
            values = described.num_rows * described.num_columns
            packed = sum(described.row_group(group).total_byte_size for group in range(described.num_row_groups))
            check_memory(max(PARQUET_ROW_BYTES * values, packed), f"{path}: reading it")
            names = list(opened.schema_arrow.names)
            _check_header(str(path), names, Findings())
            columns = [_parquet_column(path, name, opened.read([name]).column(0)) for name in names]
            rows = described.num_rows
            if any(len(text) != rows for text, _ in columns):
                raise ValueError("its columns have different lengths")
    except (GraphError, MemoryError):
        raise
    except Exception as error:  # pyarrow raises many kinds of error on damaged files
        text = str(error).splitlines()
        raise GraphError(
            f"{path}: cannot be read as a Parquet file ({text[0][:200] if text else type(error).__name__}). Write it "
            "again."
        ) from error
    texts = {name: text for name, (text, _) in zip(names, columns, strict=True)}
    numbers = {name: values for name, (_, values) in zip(names, columns, strict=True) if values is not None}
    return Table(path, texts, range(1, rows + 1), "row", numbers)


def _parquet_column(path: Path, name: str, column: Any) -> tuple[list[str], np.ndarray | None]:
    """A column as text, and as numbers if it holds numbers."""
    arrow: Any = import_module("pyarrow")
    kind = column.type
    types = arrow.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    cells = column.to_pylist()
    if types.is_boolean(kind):
        cells = [None if cell is None else int(cell) for cell in cells]
    elif not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_decimal(kind)
        or types.is_temporal(kind)
        or types.is_null(kind)
    ):
        raise GraphError(
            f"{path}: column {name!r} has type {kind}, but numbers or text are needed. Turn it into several columns, "
            "or remove it."
        )
    if types.is_floating(kind):  # a column of whole numbers with gaps is often stored as floats: 3.0 is 3
        cells = [int(cell) if cell is not None and cell.is_integer() and abs(cell) < EXACT else cell for cell in cells]
    text = ["" if cell is None or cell != cell else str(cell) for cell in cells]
    odd = next((row for row, cell in enumerate(text) if "\0" in cell), None)
    if odd is not None:
        raise GraphError(f"{path}, row {odd + 1}: column {name!r} contains a NUL character. Remove it.")
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind):
        return text, np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    return text, None
