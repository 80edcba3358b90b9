"""`accord reproduce`: run the experiments behind the paper's tables."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from accord.errors import OptionError
from accord.experiments import (
    reproduce_citation,
    reproduce_convergence,
    reproduce_methods,
    reproduce_ppi,
    reproduce_run_time,
)
from accord.learning import HistoryRow

TABLES: dict[str, Callable[..., str]] = {
    "citation": reproduce_citation,
    "convergence": reproduce_convergence,
    "methods": reproduce_methods,
    "ppi": reproduce_ppi,
    "run-time": reproduce_run_time,
}


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
        raise OptionError(f"reproduce: there is no table {table!r}. Choose one of {sorted(TABLES)}.")
    if table != "methods" and chosen.get("variants"):
        raise OptionError(f"reproduce {table}: only table methods has rows to choose. Leave --method out.")
    options: dict[str, Any] = {name: tuple(values) for name, values in chosen.items() if values}

    def announce(job: str, row: HistoryRow | None) -> None:
        if row is None:
            messages.print(f"[bold]{job}[/]")
        elif row["epoch"] % 50 == 0:
            scores = "  ".join(f"{name} {value:.3f}" for name, value in row.items() if name != "epoch")
            messages.print(f"  epoch {row['epoch']:.0f}  {scores}", highlight=False)

    return TABLES[table](
        out / table,
        seeds=parse_seeds(seeds),
        max_epochs=max_epochs,
        accelerator=accelerator,
        announce=announce,
        **options,
    )


def parse_seeds(text: str) -> tuple[int, ...]:
    """`1-5` or `1,2,7` as numbers."""
    seeds: list[int] = []
    for piece in text.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(last) < int(first)):
            raise OptionError(f"--seeds {text!r} cannot be read. Give seeds as 1-5 or 1,2,7.")
        seeds += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(seeds))
