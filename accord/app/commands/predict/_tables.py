"""A table of labels as csv, json or Parquet, or as tagged sentences."""

import csv
import io
import json
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from accord._files import replacing, write_text
from accord.datasets import sequence_suffix, write_sentences
from accord.errors import OptionError

Columns = dict[str, list[Any]]
TEXTS = ("graph", "node", "task", "token", "label", "gnn")  # of columns; ids of nodes may be numbers in one file only
WHOLE = ("disagrees", "unlikely_edges", "converged")


def write_columns(columns: Columns, path: Path) -> None:
    """Write a table in the format of the path's suffix."""
    sentences = sequence_suffix(path) is not None
    if path.suffix not in WRITER_OF_SUFFIX and not sentences:
        known = ", ".join([*WRITER_OF_SUFFIX, ".conll", ".tsv"])
        raise OptionError(f"{path}: tables cannot be written to {path.suffix or 'such'} files. Choose {known}.")
    if sentences and "token" not in columns:
        raise OptionError(f"{path}: the graphs have no words, so there are no sentences to write. Choose .csv.")
    path.parent.mkdir(parents=True, exist_ok=True)
    (_write_sentences if sentences else WRITER_OF_SUFFIX[path.suffix])(columns, path)


def to_csv(columns: Columns) -> str:
    """A table as csv text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()


def _write_csv(columns: Columns, path: Path) -> None:
    write_text(path, to_csv(columns))


def _write_sentences(columns: Columns, path: Path) -> None:
    graph = columns.get("graph", [None] * len(columns["token"]))
    rows = list(zip(graph, columns["token"], columns["label"], strict=True))
    sentences = [list(own) for _, own in groupby(rows, lambda row: row[0])]
    write_sentences([([row[1] for row in own], [row[2] or "" for row in own]) for own in sentences], path)


def _write_json(columns: Columns, path: Path) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_text(path, json.dumps(rows, indent=1) + "\n")


def _write_parquet(columns: Columns, path: Path) -> None:
    arrow, parquet = _packages(path)
    parquet.write_table(arrow.table(columns), path)


def write_block(columns: Columns, path: Path) -> None:
    """Write one of many tables as Parquet, atomically; all of them have the same types, whatever is empty."""
    arrow, parquet = _packages(path)
    arrays = {}
    for name, values in columns.items():
        if name in TEXTS:
            arrays[name] = arrow.array([None if value is None else str(value) for value in values], arrow.string())
        else:
            arrays[name] = arrow.array(values, arrow.int64() if name in WHOLE else arrow.float64())
    with replacing(path) as beside:
        parquet.write_table(arrow.table(arrays), beside)


def _packages(path: Path) -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise OptionError(
            f"{path}: writing parquet needs the package pyarrow. Install it (pip install pyarrow), or choose .csv."
        ) from error


WRITER_OF_SUFFIX = {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}
