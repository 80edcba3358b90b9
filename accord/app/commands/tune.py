"""`accord tune`: search settings on validation data, write table, plot and recipe, and train the winner as a run."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from accord._files import locked, write_bytes, write_json, write_text
from accord.app.commands.fit import build_model, fit_run
from accord.app.runs import SEARCH_FOLDER, Run, check_place
from accord.app.settings import FitSettings
from accord.datasets import Benchmark
from accord.distributed.engines import Engine
from accord.drawing import draw_trials
from accord.estimator import NodeClassifier, find_settings
from accord.methods import recipe_to_config
from accord.tuning import (
    COLUMNS,
    TITLES,
    SearchBudget,
    SearchResult,
    TrialResult,
    TunedRecipe,
    markdown_table,
    read_recipe,
    table_cells,
    trial_rows,
    write_recipe,
)

TABLE_FILE, TRIALS_FILE, PLOT_FILE, RECIPE_FILE = "table.md", "trials.json", "trials.png", "recipe.json"
SHOWN_TRIALS = 5  # of each part, on the terminal
SHOWN_COLUMNS = ("trial", "network", "features", "batch", "score, %", "loss, nats")  # as many as 80 characters hold


def tune_run(
    data: Benchmark,
    settings: FitSettings,
    budget: SearchBudget,
    path: Path,
    console: Console,
    fixed: Collection[str] = (),
    engine: Engine | None = None,
) -> Run:
    """Search in a run folder, or continue a search that was stopped, and make the best model a run like `accord fit`.

    That is the winner of the search, or the default model if the winner is no better on validation data. Test labels
    are read once, by the one that is kept.

    Args:
        data: the graphs.
        settings: of the model; what is left at its default is searched.
        budget: when the search ends, and whether the winner is trained; otherwise the run has no model.
        path: the run folder; the search has a folder inside it.
        console: for messages.
        fixed: settings that stay as they are even if that is their default: "encoder", "edge_encoder".
        engine: where trials run; None for this process. The winner is trained in this process.
    """
    model = build_model(data, settings)
    check_place(path)
    with locked(path):
        found, tuned = _search(model, data, budget, path, console, fixed, engine)
        _tell_comparison(found, budget, console)
        if not budget.train_winner:
            return Run(path, {})
        if not found.kept_default:
            settings = replace(
                settings,
                method=tuned.method,
                encoder=tuned.recipe.encoder.kind,
                edge_encoder=None,
                max_epochs=None,
                features=tuned.features,
                whole_recipe=recipe_to_config(tuned.recipe),
            )
        return fit_run(data, settings, path, console, trained=found.folder)


def _search(
    model: NodeClassifier,
    data: Benchmark,
    budget: SearchBudget,
    path: Path,
    console: Console,
    fixed: Collection[str],
    engine: Engine | None,
) -> tuple[SearchResult, TunedRecipe]:
    """Run the search and write its files; the recipe is returned as its file has it."""
    limits = f"{budget.trials} trials" + ("" if budget.minutes is None else f" or {budget.minutes:g} minutes")
    console.print(f"[bold]{escape(data.name)}[/]: searching on validation data, {limits}")

    def report(result: TrialResult) -> None:
        row = trial_rows([result])[0]
        cells = dict(zip(COLUMNS, table_cells(row), strict=True))
        console.print(
            f"[dim]{TITLES[result.part]} {row['trial']}, rung {result.rung + 1}:[/] {cells['score, %']} % "
            f"[dim]{escape(cells['network'])}, {cells['features']}, {cells['epochs']} epochs, {cells['seconds']} s[/]",
            soft_wrap=True,
        )

    found = find_settings(model, data.train, data.val or None, path, budget, report, fixed, engine)
    folder, rows = path / SEARCH_FOLDER, trial_rows(found.trials)
    write_json(folder / TRIALS_FILE, rows)
    write_text(folder / TABLE_FILE, markdown_table(rows))
    write_bytes(folder / PLOT_FILE, draw_trials(found.trials))
    write_recipe(folder / RECIPE_FILE, TunedRecipe(found.method, found.features, found.recipe))
    return found, read_recipe(folder / RECIPE_FILE)


def _tell_comparison(found: SearchResult, budget: SearchBudget, console: Console) -> None:
    """Say what came of the comparison with the default model, where it is not the search's winner that was kept."""
    if found.kept_default:
        console.print("The search found nothing better on validation data: the default model is kept.", soft_wrap=True)
    elif not budget.train_winner:
        console.print("[dim]The recipe has not been compared with the default model.[/]", soft_wrap=True)
    elif not found.compared:
        console.print(
            f"[yellow]{budget.minutes:g} minutes are too short: the default model takes more than half of them. What "
            "the search found has not been compared with it and may be worse than what accord fit gives. The same "
            "command with more --minutes continues.[/]",
            soft_wrap=True,
        )


def show_search(run: Run, console: Console) -> None:
    """Print the best trials of a finished search and the path of its recipe."""
    folder = run.path / SEARCH_FOLDER
    rows: list[dict[str, Any]] = run.read(f"{SEARCH_FOLDER}/{TRIALS_FILE}")
    for part, title in TITLES.items():
        own = [row for row in rows if row["part"] == part][:SHOWN_TRIALS]
        if own:
            table = Table(title=f"{title}, by validation data", title_justify="left")
            for column in SHOWN_COLUMNS:
                table.add_column(column, no_wrap=column != "network")
            for row in own:
                cells = dict(zip(COLUMNS, table_cells(row), strict=True))
                table.add_row(*(escape(cells[column]) for column in SHOWN_COLUMNS))
            console.print(table)
    console.print(f"All trials: {folder / TABLE_FILE}", soft_wrap=True, markup=False)
    console.print(f"Recipe: {folder / RECIPE_FILE}", soft_wrap=True, markup=False)
