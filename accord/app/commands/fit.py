"""`accord fit`: train in a run folder, evaluate once on test graphs at the end, write the report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from accord.app.cases import choose_cases
from accord.app.commands.report import write_report
from accord.app.labelling import OWN_TITLES, label_graphs
from accord.app.progress import TrainingProgress
from accord.app.runs import CASES, REPORT, RESULTS, SEEN, Run, has_checkpoint, start_run
from accord.app.scoring import Scores, reliability, score_parts, score_table
from accord.app.settings import FitSettings, override_recipe
from accord.app.sources import Source, widest_scale
from accord.errors import OptionError
from accord.estimator import ACCELERATORS, NodeClassifier
from accord.evaluation import metric_for, unseen_nodes
from accord.experiments import provenance
from accord.graphs import fingerprint_graphs
from accord.methods import METHODS, ProxyModel, Recipe, library_versions, preset_recipe, recipe_to_config

WIDE = 100.0  # times: beyond this, features on one scale drown those on another


@dataclass(frozen=True)
class Comparison:
    """What a caller wants in the table of results beside the model's own parts."""

    rows: Callable[[NodeClassifier, Source], dict[str, Scores]]
    titles: Mapping[str, str]  # of all rows, in their order
    note: str  # what they mean, for the report


def fit_run(
    source: Source,
    settings: FitSettings,
    path: Path,
    console: Console,
    comparison: Comparison | None = None,
    marks: Mapping[str, Any] | None = None,
) -> Run:
    """Train, or go on training, the model that the settings describe; a finished run is shown, not repeated.

    Args:
        source: the graphs.
        settings: how to train.
        path: the run folder.
        console: for messages.
        comparison: what else belongs into the table of results.
        marks: what config.json says beside; a command knows its own runs by it.
    """
    recipe = build_recipe(source, settings)
    run = start_run(path, run_config(source, settings, recipe) | dict(marks or {}))
    if run.finished:
        console.print(f"[dim]{path} is finished already; remove it, or choose another with --run, to train again.[/]")
    else:
        _say_what_is_done(source, settings, recipe, run, console)
        began = time.perf_counter()
        model = train(source, settings, recipe, run, console)
        seconds = time.perf_counter() - began
        device = next(iter(model.model_.tensors().values())).device
        results = evaluate_once(model, source, run, comparison)
        run.write(
            RESULTS,
            results | {"seconds": round(seconds, 2), **provenance(device)},
        )
        write_report(run)
    return run


def show_run(run: Run, console: Console) -> None:
    """The table of a finished run, and where its report is."""
    results = run.read(RESULTS)
    if "test" in results:
        title = f"{run.config['data']['name']}, {run.config['data']['graphs']['test']} test graphs"
        console.print(score_table(results["test"], title, results.get("titles")))
    console.print(f"Report: {run.path / REPORT}", soft_wrap=True)


def build_recipe(source: Source, settings: FitSettings) -> Recipe:
    """The preset's recipe with what the settings change of it; settings that cannot be used are refused here."""
    check_settings(settings)
    recipe = preset_recipe(
        settings.preset, settings.encoder, settings.edge_encoder, source.preset_row, settings.method, settings.refine
    )
    recipe = override_recipe(recipe, settings.recipe)
    training = replace(recipe.training, accelerator=settings.accelerator)
    if settings.max_epochs is not None:
        training = replace(training, max_epochs=settings.max_epochs)
    return replace(recipe, training=training)


def check_settings(settings: FitSettings) -> None:
    """Refuse what the estimator would refuse, before anything is written."""
    if settings.method not in METHODS:
        raise OptionError(f"method {settings.method!r} is unknown. Choose one of {', '.join(METHODS)}.")
    if settings.method != "spn" and (settings.refine or settings.recipe.get("refinement")):
        raise OptionError(f"method {settings.method!r} has no refinement. Leave --refine out, or choose spn.")
    if settings.level is not None:
        metric_for(settings.level)
    if settings.accelerator not in ACCELERATORS:
        raise OptionError(f"accelerator {settings.accelerator!r} is unknown. Choose one of {', '.join(ACCELERATORS)}.")
    if settings.accelerator == "cuda" and not torch.cuda.is_available():
        raise OptionError("accelerator 'cuda' is not to be had: torch finds no GPU here. Choose cpu or auto.")


def run_config(source: Source, settings: FitSettings, recipe: Recipe) -> dict[str, Any]:
    """What config.json says: everything that the result depends on."""
    bench = source.bench
    return {
        "settings": settings.plain() | {"level": settings.level or bench.level, "features": bench.features},
        "recipe": recipe_to_config(recipe),
        "data": {
            "name": bench.name,
            "source": bench.source,
            "graphs": {"train": len(bench.train), "val": len(bench.val), "test": len(bench.test)},
            "fingerprint": {name: fingerprint_graphs(getattr(bench, name)) for name in ("train", "val", "test")},
            "num_features": bench.num_features,
            "num_states": bench.num_states,
            "num_tasks": bench.num_tasks,
        },
        "label_names": source.label_names,
        "task_names": source.task_names,
        "versions": library_versions(),
    }


def train(source: Source, settings: FitSettings, recipe: Recipe, run: Run, console: Console) -> NodeClassifier:
    """Fit the model and leave it, and what predictions need beside it, in the run folder."""
    bench = source.bench
    model = NodeClassifier(
        method=settings.method,
        encoder=recipe.encoder,
        edge_encoder=recipe.edge_encoder,
        level=settings.level or bench.level,
        refine=settings.refine,
        seed=settings.seed,
        preset=settings.preset,
        recipe=recipe,
        num_states=bench.num_states,
        label_names=source.label_names,
        accelerator=settings.accelerator,
    )
    with TrainingProgress(run.path, METHODS[settings.method](recipe).epochs, console) as progress:
        model.fit(bench.train, bench.val or None, folder=run.path, report=progress)
    if source.scaling is not None:
        source.scaling.save(run.path)
    if all("node_id" in graph for graph in bench.train):
        np.savez(run.path / SEEN, node_id=torch.cat([graph.node_id for graph in bench.train]).unique().numpy())
    model.save(run.path)
    return model


def evaluate_once(
    model: NodeClassifier, source: Source, run: Run, comparison: Comparison | None = None
) -> dict[str, Any]:
    """Everything that is said about test graphs, which nothing before has looked at."""
    chosen = None
    if isinstance(model.model_, ProxyModel):
        combination = model.model_.chosen.tensors()
        chosen = {name: [round(value, 6) for value in values.tolist()] for name, values in combination.items()}
    test = source.bench.test
    if not any(graph.y is not None and bool((graph.y >= 0).any()) for graph in test):
        return {"chosen": chosen}
    labelled = label_graphs(model, test)
    scores = score_parts(labelled, unseen_nodes(source.bench.train, test))
    said: dict[str, Any] = {"titles": OWN_TITLES[model.method]} if model.method in OWN_TITLES else {}
    if comparison is not None:
        scores |= comparison.rows(model, source)
        scores = {name: scores[name] for name in comparison.titles}
        said = {"titles": dict(comparison.titles), "note": comparison.note}
    images = torch.cat([graph.x for graph in test]) if source.has_images else None
    run.write(CASES, [case.plain() for case in choose_cases(labelled, images)])
    return {"test": scores, "reliability": reliability(labelled), "chosen": chosen, **said}


def _say_what_is_done(source: Source, settings: FitSettings, recipe: Recipe, run: Run, console: Console) -> None:
    bench = source.bench
    both = settings.method not in ("gnn", "smooth")
    kinds = dict.fromkeys([recipe.encoder.kind, *([recipe.edge_encoder.kind] if both else [])])
    counts = f"{len(bench.train)} training, {len(bench.val)} validation, {len(bench.test)} test graphs"
    console.print(
        f"[bold]{bench.name}[/]: {counts}; "
        f"{bench.num_features} features, {bench.num_states} states; {settings.method} with {' and '.join(kinds)}"
    )
    if not bench.val:
        console.print("[dim]There is no val/: a fifth of the training data is held out to choose by.[/]")
    if source.preset_row is None and source.scaling is None and widest_scale(bench.train) > WIDE:
        console.print("[yellow]Features differ widely in scale; --features standardised may help much.[/]")
    if has_checkpoint(run.path):
        console.print(f"[dim]Going on from the checkpoint in {run.path}.[/]")
