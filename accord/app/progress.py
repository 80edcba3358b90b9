"""Progress of a training run: a bar, metrics.csv, and TensorBoard if it is installed."""

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from accord._files import write_text
from accord.app.runs import METRICS_FILE
from accord.learning import HistoryRow

TENSORBOARD_FOLDER = "tensorboard"
EPOCH = "epoch"  # the first column


class MetricsFile:
    """metrics.csv: one row for each evaluation on validation data, written at once.

    A run that continues repeats the evaluations since its last checkpoint; their rows are replaced. Damaged rows are
    left out until training is complete.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / METRICS_FILE
        self.rows = read_metrics(self.path)
        self.rewrite = True  # the file may end in a line that was cut off

    def add(self, row: HistoryRow) -> None:
        """Append a row; the whole file is rewritten if earlier rows or the columns change."""
        columns = list(self.rows[0]) if self.rows else []
        kept = [old for old in self.rows if old["epoch"] < row["epoch"]]
        rewrite = self.rewrite or len(kept) < len(self.rows) or not set(row) <= set(columns)
        self.rewrite = False
        self.rows = [*kept, row]
        if rewrite:
            columns = list(dict.fromkeys(key for known in self.rows for key in known))
            self.rows = [{key: old.get(key, math.nan) for key in columns} for old in self.rows]
            write_text(self.path, _text([columns, *([*old.values()] for old in self.rows)]))
        else:
            with self.path.open("a", newline="", encoding="utf-8") as file:
                file.write(_text([[row.get(key, math.nan) for key in columns]]))
            self.rows[-1] = {key: row.get(key, math.nan) for key in columns}

    def complete(self, history: Sequence[HistoryRow]) -> None:
        """Write the rows of a finished training, if rows of the file were damaged or lost."""
        columns = list(dict.fromkeys(key for row in [*self.rows, *history] for key in row))
        if _cells(self.rows, columns) != _cells(history, columns):
            columns = list(dict.fromkeys(key for row in history for key in row))
            self.rows = [{key: row.get(key, math.nan) for key in columns} for row in history]
            write_text(self.path, _text([columns, *([*row.values()] for row in self.rows)]))


def read_metrics(path: Path) -> list[HistoryRow]:
    """Read a metrics file: NaN for empty cells, without lines that are damaged or cut off."""
    if not path.is_file():
        return []
    lines = [line.split(",") for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    if not lines or EPOCH not in lines[0] or len(set(lines[0])) < len(lines[0]):
        return []
    rows: list[HistoryRow] = []
    for line in lines[1:]:
        try:
            row = {key: float(cell) if cell else math.nan for key, cell in zip(lines[0], line, strict=True)}
        except ValueError:
            continue
        if math.isfinite(row[EPOCH]) and (not rows or row[EPOCH] > rows[-1][EPOCH]):
            rows.append(row)
    return rows


def _cells(rows: Sequence[HistoryRow], columns: Sequence[str]) -> list[list[Any]]:
    return [[_cell(row.get(key, math.nan)) for key in columns] for row in rows]


def _text(lines: list[list[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for line in lines:
        writer.writerow([_cell(value) for value in line])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else int(value) if value.is_integer() and abs(value) < 1e15 else repr(value)


class TrainingProgress:
    """Shows and writes the progress of training: a context, and the `report` callback of `NodeClassifier.fit`."""

    def __init__(self, folder: Path, max_epochs: int, console: Console) -> None:
        self.metrics = MetricsFile(folder)
        self.board = open_board(folder / TENSORBOARD_FOLDER)
        self.bar = Progress(
            TextColumn("[bold]training"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("[dim]{task.fields[scores]}"),
            TimeRemainingColumn(),
            console=console,
        )
        self.task = self.bar.add_task("", total=max(max_epochs, 1), scores="")

    def __enter__(self) -> "TrainingProgress":
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.bar.stop()
        if self.board is not None:
            self.board.close()

    def __call__(self, row: HistoryRow) -> None:
        """Show and write one row of metrics."""
        self.metrics.add(row)
        self.bar.update(self.task, completed=row["epoch"], scores=describe(row))
        if self.board is not None:
            for name, value in row.items():
                if name != "epoch":
                    self.board.add_scalar(name.replace("_", "/"), value, int(row["epoch"]))


def describe(row: HistoryRow) -> str:
    """Training loss and validation score of each network, short enough for a narrow terminal."""
    networks = [name.removesuffix("_score") for name in row if name.endswith("_score")]
    shown = []
    for network in networks:
        loss = f"{row[f'{network}_loss']:.2f} " if f"{network}_loss" in row else ""
        shown.append(f"{network} {loss}→ {row[f'{network}_score']:.1%}")
    return "  ".join(shown)


def open_board(folder: Path) -> Any:
    """A TensorBoard writer; None if the package is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))
