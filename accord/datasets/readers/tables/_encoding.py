"""From columns of numbers and text to one matrix with named columns: categories one-hot, missing values marked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from accord.datasets._sources import check_memory
from accord.datasets.readers._findings import Findings
from accord.datasets.readers.tables._cells import Column
from accord.graphs.features._columns import CATEGORY, MARK, MISSING, NUMBER, Columns

MOST_CATEGORIES = 100  # different values of a column of text that is read as categories
FEW_ROWS = 20  # from so many values on, a column that differs in most rows names them rather than describing them
ENTRY_BYTES = 16  # of a number while it is encoded, converted and checked


@dataclass(frozen=True, eq=False)
class ColumnSet:
    """Columns of one table, with the file they are from. `items` are lists of counted items for each row."""

    path: Path
    rows: int
    columns: list[Column]
    forced: frozenset[str] = frozenset()  # columns of text that the mapping calls categories
    items: Mapping[str, list[dict[str, float]]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A matrix [rows, columns] with the names and kinds of its columns."""

    values: np.ndarray
    names: list[str]
    kinds: list[str]


def known_kind(name: str, known: Columns | None) -> bool | None:
    """Whether a model reads this column as text; None if it does not know the column."""
    if known is None:
        return None
    if name in known.categorical():
        return True
    return False if name in known.of_kind(NUMBER) else None


def decide_text(tables: Sequence[ColumnSet], known: Columns | None, findings: Findings) -> dict[str, str]:
    """What is done to every column of text: "category", or why it is left out. All tables decide together.

    Args:
        tables: of the training graphs.
        known: columns of a fitted model, which has decided already.
        findings: get how each column is used.
    """
    values: dict[str, set[str]] = {}
    rows: dict[str, int] = {}
    for table in tables:
        for column in table.columns:
            if column.texts is not None:
                values.setdefault(column.name, set()).update(column.texts)
                gaps = 0 if column.missing is None else int(column.missing.sum())
                rows[column.name] = rows.get(column.name, 0) + table.rows - gaps
    forced = {name for table in tables for name in table.forced}
    decided: dict[str, str] = {}
    for name, found in values.items():
        count = len(found - {""})
        if known is not None:
            decided[name] = CATEGORY if name in known.categorical() else "unknown to the model"
        elif name in forced or count <= FEW_ROWS or (count <= MOST_CATEGORIES and 2 * count <= rows[name]):
            decided[name] = CATEGORY
        else:
            decided[name] = f"text with {count} different values in {rows[name]} rows"
    for table in tables:
        for column in table.columns:
            findings.use(table.path, column.name, _use(column, table.rows, decided, values))
        for name, lists in table.items.items():
            count = len({item for row in lists for item in row})
            findings.use(table.path, name, f"features: lists of {count} different items")
    return decided


def _use(column: Column, rows: int, decided: Mapping[str, str], values: Mapping[str, set[str]]) -> str:
    gaps = 0 if column.missing is None else int(column.missing.sum())
    missing = f"; {gaps} of {rows} missing" if gaps else ""
    if column.numbers is not None:
        return f"feature: numbers{missing}{', filled with the training mean' if gaps else ''}"
    if column.texts is None:
        return "left out: every cell is empty"
    if decided[column.name] != CATEGORY:
        return f"left out: {decided[column.name]} (`categories` in the mapping file keeps it)"
    return f"feature: {len(values[column.name] - {''})} categories{missing}"


def encode(table: ColumnSet, decided: Mapping[str, str], numeric: Iterable[str] = ()) -> Encoded:
    """The columns of a table as one matrix.

    Args:
        table: the columns.
        decided: of each column of text, whether it is read as categories.
        numeric: names of columns of numbers in other tables; an empty column of such a name is one as well.
    """
    numeric = set(numeric)
    names: list[str] = []
    kinds: list[str] = []
    parts: list[tuple[np.ndarray, np.ndarray] | np.ndarray] = []  # dense values, or rows and values of a sparse column

    def add(name: str, kind: str, part: tuple[np.ndarray, np.ndarray] | np.ndarray) -> None:
        names.append(name)
        kinds.append(kind)
        parts.append(part)

    for column in table.columns:
        if column.numbers is not None:
            add(column.name, NUMBER, column.numbers)
        elif column.texts is None and (column.name in numeric or not (table.rows or column.name in decided)):
            add(column.name, NUMBER, (np.empty(0, np.int64), np.empty(0, np.float32)))
        elif column.texts is None and decided.get(column.name) != CATEGORY:
            continue
        elif column.texts is not None:
            if decided.get(column.name) != CATEGORY:
                continue
            cells = _by_item([{text: 1.0} if text else {} for text in column.texts])
            for value, (chosen, ones) in sorted(cells.items()):
                add(f"{column.name}={value}", CATEGORY, (np.array(chosen), np.array(ones, np.float32)))
        if column.missing is not None:
            gaps = np.flatnonzero(column.missing)
            add(f"{column.name}{MARK}", MISSING, (gaps, np.ones(len(gaps), np.float32)))
    for name, lists in table.items.items():
        for item, (chosen, counts) in sorted(_by_item(lists).items(), key=_item_order):
            add(f"{name}={item}", CATEGORY, (np.array(chosen), np.array(counts, np.float32)))
    check_memory(ENTRY_BYTES * table.rows * len(names), f"{table.path}: a matrix of shape [{table.rows}, {len(names)}]")
    values = np.zeros((table.rows, len(names)), np.float32)
    for place, part in enumerate(parts):
        if isinstance(part, tuple):
            values[part[0], place] = part[1]
        else:
            values[:, place] = part
    return Encoded(values, names, kinds)


def _by_item(lists: Sequence[Mapping[str, float]]) -> dict[str, tuple[list[int], list[float]]]:
    found: dict[str, tuple[list[int], list[float]]] = {}
    for row, items in enumerate(lists):
        for item, count in items.items():
            rows, counts = found.setdefault(item, ([], []))
            rows.append(row)
            counts.append(count)
    return found


def _item_order(entry: tuple[str, object]) -> tuple[bool, int, str]:
    """Whole numbers first, by size."""
    text = entry[0]
    number = text.isascii() and text.isdigit() and len(text) < 19
    return (not number, int(text) if number else 0, text)
