"""`accord reproduce`: run the experiments behind the paper's tables.

Tables by the paper's numbers, figures and studies go through one store (`accord.experiments.reproduction`). The tables
with names of their own (citation, methods, ppi, run-time, convergence) have a folder of files each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from accord._files import locked
from accord.distributed.engines import Engine
from accord.errors import OptionError
from accord.experiments import (
    reproduce_citation,
    reproduce_convergence,
    reproduce_methods,
    reproduce_ppi,
    reproduce_run_time,
)
from accord.experiments.reproduction import (
    STORE,
    Asked,
    Cell,
    Results,
    Store,
    all_targets,
    import_results,
    parse_budget,
    run_missing,
    write_report,
)
from accord.learning import HistoryRow

TABLES: dict[str, Callable[..., str]] = {
    "citation": reproduce_citation,
    "convergence": reproduce_convergence,
    "methods": reproduce_methods,
    "ppi": reproduce_ppi,
    "run-time": reproduce_run_time,
}


def _announcing(messages: Console) -> Callable[[str, HistoryRow | None], None]:
    """A callback that prints the name of each job and every fiftieth epoch."""

    def announce(job: str, row: HistoryRow | None) -> None:
        if row is None:
            messages.print(f"[bold]{job}[/]")
        elif row["epoch"] % 50 == 0:
            scores = "  ".join(f"{name} {value:.3f}" for name, value in row.items() if name != "epoch")
            messages.print(f"  epoch {row['epoch']:.0f}  {scores}", highlight=False)

    return announce


def reproduce_table(
    table: str,
    out: Path,
    chosen: Mapping[str, Sequence[str] | None],
    seeds: str,
    max_epochs: int | None,
    accelerator: str,
    messages: Console,
) -> str:
    """Run a table, show progress, and return it as Markdown.

    Args:
        table: its name.
        out: folder of all tables; each has its own folder there.
        chosen: requested benchmarks, encoders, presets and variants; None for the table's own.
        seeds: as people write them, for instance 1-5.
        max_epochs: None for the presets'.
        accelerator: "auto", "cpu" or "cuda".
        messages: where progress is shown.
    """
    if table not in TABLES:
        known = ", ".join([*sorted(TABLES), *all_targets()])
        raise OptionError(f"reproduce: there is no table {table!r}. Choose one of {known}.")
    if table != "methods" and chosen.get("variants"):
        raise OptionError(f"reproduce {table}: only table methods has rows to choose. Leave --method out.")
    options: dict[str, Any] = {name: tuple(values) for name, values in chosen.items() if values}

    return TABLES[table](
        out / table,
        seeds=parse_seeds(seeds),
        max_epochs=max_epochs,
        accelerator=accelerator,
        announce=_announcing(messages),
        **options,
    )


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked of the store: a target, parts of it, seeds, epochs, time, and files to take in first."""

    target: str
    chosen: Mapping[str, Sequence[str] | None]
    seeds: str | None = None
    max_epochs: int | None = None
    accelerator: str = "auto"
    budget: str | None = None
    merge: Sequence[Path] = ()
    document: Path | None = None


def reproduce_paper(out: Path, wanted: Wanted, messages: Console, engine: Engine | None = None) -> str:
    """Merge, run what is missing within the budget, and write the report; returns its summary.

    Args:
        out: folder of all tables; the store has its own folder there.
        wanted: what is asked for.
        messages: where progress is shown.
        engine: where tasks are computed; None for this process.
    """
    cells = choose_cells(wanted.target, wanted.chosen)
    seeds = None if wanted.seeds is None else parse_seeds(wanted.seeds)
    budget = float("inf") if wanted.budget is None else parse_budget(wanted.budget)
    folder = out / "reproduction"
    store = Store(folder / STORE)
    for path in wanted.merge:
        added = store.append(*import_results(path)) if path.is_dir() else store.merge(path)
        messages.print(f"{path}: {added} new records")
    asked = Asked(cells, seeds, wanted.max_epochs)
    progress = run_missing(folder, asked, budget, wanted.accelerator, _announcing(messages), engine)
    if progress.absent:
        messages.print(f"not found, left out: {', '.join(progress.absent)}")
    for text in progress.failed:
        messages.print(f"failed, left out: {text}", markup=False)
    with locked(folder):
        summary = write_report(folder, Results(*store.read()), wanted.document)
    left = f"{progress.finished} tasks computed, {progress.left} left. Report: {folder / 'report.html'}"
    return f"{summary}\n{left}"


def choose_cells(target: str, chosen: Mapping[str, Sequence[str] | None]) -> tuple[Cell, ...]:
    """The cells of a target that match the requested benchmarks, encoders, presets and methods."""
    fields = {"benchmarks": "data", "encoders": "encoder", "presets": "preset", "variants": "method"}
    asked = {fields[name]: values for name, values in chosen.items() if values}
    cells = tuple(
        cell for cell in all_targets()[target] if all(getattr(cell, name) in values for name, values in asked.items())
    )
    if not cells:
        listed = "; ".join(f"{name} {', '.join(values)}" for name, values in asked.items())
        raise OptionError(f"reproduce {target}: has no cell with {listed}. Leave an option out.")
    return cells


def parse_seeds(text: str) -> tuple[int, ...]:
    """`1-5` or `1,2,7` as numbers."""
    seeds: list[int] = []
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise OptionError(f"--seeds {text!r} cannot be read. Give seeds as 1-5 or 1,2,7.")
        seeds += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(seeds))
