"""Columns of a table as numbers or as text, with missing values marked; bad cells are reported with their row."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from accord.datasets.readers._findings import Findings
from accord.datasets.readers._raw import LONGEST_LABEL, NOT_IN_NUMBERS, SHOWN_CHARACTERS, parse_number
from accord.datasets.readers.tables._table import Table

MAX_FEATURE = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Column:
    """Cells of one column: numbers, or text, or neither where every cell is empty."""

    name: str
    numbers: np.ndarray | None = None  # [rows], float32; 0 where missing
    texts: Sequence[str] | None = None  # "" where missing
    missing: np.ndarray | None = None  # [rows], bool; None if nothing is missing

    def rows(self, chosen: np.ndarray) -> "Column":
        """The same column with these rows only."""
        missing = None if self.missing is None else self.missing[chosen]
        return Column(
            self.name,
            None if self.numbers is None else self.numbers[chosen],
            None if self.texts is None else [self.texts[row] for row in chosen.tolist()],
            missing if missing is not None and missing.any() else None,
        )


def read_column(table: Table, name: str, missing: Collection[str], text: bool | None, findings: Findings) -> Column:
    """Read one column. It holds numbers if at least half of its cells look like numbers, else text.

    Args:
        table: the table.
        name: of the column.
        missing: text that stands for a missing value, besides nothing.
        text: True for a column that is known to be text, False for numbers, None to decide by its cells.
        findings: get the cells that cannot be read.
    """
    if not len(table) and text is None:
        return Column(name)  # other tables tell what it holds
    if text is not True:
        whole = table.numbers[name] if name in table.numbers else _plain_numbers(table.columns[name])
        if whole is not None and name not in table.numbers:
            return Column(name, whole)
        if whole is not None and bool((np.isnan(whole) | (np.abs(whole) <= MAX_FEATURE)).all()):
            gaps = np.isnan(whole)
            if gaps.all() and text is None:
                return Column(name, missing=gaps)
            numbers = np.where(gaps, 0, whole).astype(np.float32)
            return Column(name, numbers, missing=gaps if gaps.any() else None)
    cells = table.text(name)
    empty = np.array([cell == "" or cell in missing for cell in cells], dtype=bool)
    gaps_or_none = empty if empty.any() else None
    if empty.all() and text is None:
        return Column(name, missing=gaps_or_none)
    if text is True or (text is None and not _mostly_numbers(cells, empty)):
        kept = ["" if gap else cell for cell, gap in zip(cells, empty.tolist(), strict=True)]
        for row, cell in enumerate(kept):
            if len(cell) > LONGEST_LABEL:
                findings.problem(
                    f"{table.place(row)}: column {name!r} holds a text of {len(cell)} characters, but at most "
                    f"{LONGEST_LABEL} are allowed. List the column under `ignore` in the mapping file."
                )
                kept[row] = ""
        return Column(name, texts=kept, missing=gaps_or_none)
    return Column(name, _numbers(table, name, cells, empty, findings), missing=gaps_or_none)


def _plain_numbers(cells: Sequence[str]) -> np.ndarray | None:
    """The cells as float32 if every one is a plain finite number; None otherwise."""
    try:
        read = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        values = read.astype(np.float32)
    if not np.isfinite(values).all() or NOT_IN_NUMBERS.search("".join(cells)):
        return None
    return values


def _mostly_numbers(cells: Sequence[str], empty: np.ndarray) -> bool:
    """Whether at least half of the cells that are not empty look like numbers, also such as `1_0`, `nan` and `0x1`."""
    filled = [cell for cell, gap in zip(cells, empty.tolist(), strict=True) if not gap]
    return 2 * sum(map(_looks_like_number, filled)) >= len(filled)


def _looks_like_number(cell: str) -> bool:
    if cell.lower().lstrip("+-").startswith("0x"):
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _numbers(table: Table, name: str, cells: Sequence[str], empty: np.ndarray, findings: Findings) -> np.ndarray:
    """Cells of a column of numbers; those that are not are reported and read as 0."""
    values = np.zeros(len(cells), np.float32)
    for row in np.flatnonzero(~empty).tolist():
        number = parse_number(cells[row])
        if number is not None and abs(number) <= MAX_FEATURE:
            values[row] = number
            continue
        shown = repr(cells[row][:SHOWN_CHARACTERS])
        if number is None or not np.isfinite(number):
            what = f"holds {shown}, which is not a finite number"
        else:
            what = f"holds {shown}, which is too large for float32"
        findings.problem(
            f"{table.place(row)}: column {name!r} {what}, unlike most of its cells. Correct it, leave it empty, or "
            "list the column under `categories`, or the text under `missing`, in the mapping file."
        )
    return values
