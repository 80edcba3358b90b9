"""`accord fit`: train in a run folder, evaluate on the test graphs once, at the end, and write the report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape

from accord._files import locked, replacing
from accord._version import library_versions
from accord.app.commands.data._check import show_columns
from accord.app.commands.report import unlabelled_words, write_report
from accord.app.progress import TrainingProgress
from accord.app.runs import (
    CASES_FILE,
    CASES_KEY,
    REPORT_FILE,
    RESULTS_FILE,
    SEEN_NODES_FILE,
    Run,
    check_place,
    has_checkpoint,
    move_checkpoints,
    reading,
    start_run,
)
from accord.app.scores import part_titles, score_table
from accord.app.settings import FitSettings, class_weight, override_recipe
from accord.app.sources import Beside, benchmark_name, load_beside
from accord.datasets import Benchmark, DigitsBenchmark, FolderBenchmark
from accord.estimator import NodeClassifier
from accord.estimator.fitting._streaming import check_streaming
from accord.estimator.fitting._weights import plain_weights
from accord.evaluation import Scores, choose_cases, reliability, score_answers, seen_nodes, unseen_nodes
from accord.experiments import provenance
from accord.graphs import (
    TEST_MASK,
    VAL_MASK,
    WordOptions,
    fingerprint_graphs,
    has_labels,
    have_mask,
    labels_within,
    scale_ratio,
)
from accord.learning.training import check_batches, join_processes
from accord.methods import recipe_from_config, recipe_to_config

MEASURED = ("precision", "departure", "unseen")  # parts of a choice that say nothing to readers of a report
WIDE_SCALE = 100.0  # ratio of spreads from which features of one scale hide those of another


@dataclass(frozen=True)
class ExtraRows:
    """Rows that a caller adds to the table of results."""

    scores: Callable[[NodeClassifier], dict[str, Scores]]
    titles: Mapping[str, str]  # of all rows, the model's own included, in order
    note: str  # an explanation of the rows, for the report


def fit_run(
    data: Benchmark,
    settings: FitSettings,
    path: Path,
    console: Console,
    extra: ExtraRows | None = None,
    marks: Mapping[str, Any] | None = None,
    trained: Path | None = None,
) -> Run:
    """Train a model in a run folder, or continue a stopped run; a finished run is not repeated.

    The folder is locked: a second process that uses it is refused.

    Args:
        data: the graphs.
        settings: of the model and its training.
        path: the run folder.
        console: for messages.
        extra: further rows for the table of results.
        marks: further keys for config.json, by which a command recognises its own runs.
        trained: where the same settings have been trained already: training goes on from the checkpoints there.
    """
    model, beside = build_model(data, settings), load_beside(settings.unlabelled, settings.start)
    processes = join_processes(model.resolve_recipe(data.train).training)
    config = run_config(data, settings, model) | dict(marks or {}) | ({"beside": beside.marks} if beside.marks else {})
    check_place(path)  # before the lock makes a file
    with locked(path):
        run = start_run(path, config)
        if processes.from_first(run.finished):
            name = escape(str(path))
            console.print(
                f"[dim]{name} is already finished. To train again, remove it or choose another folder with --run.[/]",
                soft_wrap=True,
            )
        else:
            if trained is not None:
                move_checkpoints(trained, path)
            _announce(data, model, run, console, settings.start)
            began = time.perf_counter()
            train(model, data, run, console, beside)
            seconds = time.perf_counter() - began
            results = evaluate_once(model, data, run, extra)
            run.write(RESULTS_FILE, results | {"seconds": round(seconds, 2), **provenance(model.model_.device)})
            (path / REPORT_FILE).unlink(missing_ok=True)  # of earlier results
        if not (path / REPORT_FILE).is_file():  # also after a kill between results and report
            write_report(run)
    return run


def share_training(data: Benchmark, settings: FitSettings, path: Path) -> None:
    """Train together with the first process, which alone does what else `fit_run` does; nothing is written here."""
    model, beside = build_model(data, settings), load_beside(settings.unlabelled, settings.start)
    processes = join_processes(model.resolve_recipe(data.train).training)
    finished: bool = processes.from_first(False)
    if not finished:
        model.fit(data.train, data.val or None, path, unlabelled=beside.unlabelled, start=beside.start)


def show_run(run: Run, console: Console) -> None:
    """Print the table of a finished run and the path of its report."""
    with reading(run.path):
        results = run.read(RESULTS_FILE)
        if "test" in results:
            count = run.config["data"]["graphs"]["test"]
            title = f"{run.config['data']['name']}, {f'{count} test graphs' if count else 'nodes in test_mask'}"
            console.print(score_table(results["test"], title, results["titles"]))
    console.print(f"Report: {run.path / REPORT_FILE}", soft_wrap=True, markup=False)


def build_model(data: Benchmark, settings: FitSettings) -> NodeClassifier:
    """The untrained model of these settings; bad settings are refused here, before any file is written."""
    model = NodeClassifier(
        method=settings.method,
        encoder=settings.encoder,
        edge_encoder=settings.edge_encoder,
        level=settings.level or data.level,
        refine=settings.refine,
        max_epochs=settings.max_epochs,
        seed=settings.seed,
        preset=settings.preset,
        benchmark=benchmark_name(data),
        recipe=recipe_from_config(settings.whole_recipe) if settings.whole_recipe else None,
        num_states=data.num_states,
        label_names=data.label_names,
        accelerator=settings.accelerator,
        devices=settings.devices or 1,
        nodes=settings.nodes or 1,
        features=settings.features,
        task_names=data.task_names,
        ensemble=settings.ensemble,
        refit=settings.refit,
        order=settings.order,
        class_weight=class_weight(settings.class_weight, data.label_names),
        words=None if settings.word_vectors is None else WordOptions(vectors=settings.word_vectors),
    )
    plain_weights(model.class_weight, data.num_states, data.label_names)  # refuses unknown states
    recipe = model.resolve_recipe(data.train)
    if settings.recipe:
        recipe = override_recipe(recipe, settings.recipe)
        if set(settings.recipe) == {"training"}:  # all else stays to be decided by the data
            model.set_params(training={name: getattr(recipe.training, name) for name in settings.recipe["training"]})
            recipe = model.resolve_recipe(data.train)
        else:
            model.set_params(recipe=recipe)
    check_streaming(data.train, data.val, refit=settings.refit, unlabelled=settings.unlabelled)
    check_batches(data.train, recipe.training)
    return model


def run_config(data: Benchmark, settings: FitSettings, model: NodeClassifier) -> dict[str, Any]:
    """The content of config.json: everything on which the result depends."""
    return {
        "settings": settings.plain() | {"level": model.level, "features": model.resolve_features(data.train)},
        "recipe": recipe_to_config(model.resolve_recipe(data.train)),
        "data": {
            "name": data.name,
            "source": data.source,
            "graphs": {"train": len(data.train), "val": len(data.val), "test": len(data.test)},
            "fingerprint": {name: fingerprint_graphs(getattr(data, name)) for name in ("train", "val", "test")},
            "num_features": data.num_features,
            "num_states": data.num_states,
            "num_tasks": data.num_tasks,
        },
        "label_names": data.label_names,
        "task_names": data.task_names,
        "versions": library_versions(),
    }


def train(model: NodeClassifier, data: Benchmark, run: Run, console: Console, beside: Beside) -> None:
    """Fit the model and save it in the run folder, together with the ids of the training nodes."""
    epochs = model.planned_epochs(data.train, beside.unlabelled is not None, beside.start is not None)
    with TrainingProgress(run.path, epochs, console) as progress:
        model.fit(data.train, data.val or None, run.path, progress, unlabelled=beside.unlabelled, start=beside.start)
    if model.unlabelled_ is not None:
        console.print(f"[dim]{unlabelled_words(model.unlabelled_)}.[/]", soft_wrap=True)
    progress.metrics.complete(model.model_.history)
    seen = seen_nodes(data.train)
    if seen is not None:
        with replacing(run.path / SEEN_NODES_FILE) as new, new.open("wb") as file:
            np.savez(file, node_id=seen.numpy())
    model.save(run.path)


def evaluate_once(model: NodeClassifier, data: Benchmark, run: Run, extra: ExtraRows | None = None) -> dict[str, Any]:
    """The content of results.json; this is the only place where a run reads test labels."""
    chosen = {name: [_rounded(v) for v in values] for name, values in model.choice_.items() if name not in MEASURED}
    found = {"chosen": chosen, "networks": _networks(model), "candidates": _candidates(model)}
    if model.unlabelled_ is not None:
        found["unlabelled"] = model.unlabelled_
    test = data.test or [graph for graph in data.train if have_mask([graph], TEST_MASK)]
    if not any(has_labels(labels_within(graph, TEST_MASK, "test graphs")) for graph in test):
        return found
    answers = model.answers(test)
    assert answers.truth is not None
    scores = score_answers(answers, unseen_nodes(data.train, test), model.label_names_)
    titles: dict[str, str] = {name: part_titles(model.method)[name] for name in scores}
    note: dict[str, str] = {}
    if extra is not None:
        scores |= extra.scores(model)
        scores = {name: scores[name] for name in extra.titles}
        titles, note = dict(extra.titles), {"note": extra.note}
    images = torch.cat([graph.x for graph in test]) if isinstance(data, DigitsBenchmark) else None
    run.write(CASES_FILE, {CASES_KEY: [case.plain() for case in choose_cases(answers, images)]})
    bins = {
        name: asdict(reliability(probabilities.flatten(0, 1), answers.truth.flatten()))
        for name, probabilities in answers.probabilities.items()
    }
    gain = model.joint_gain(test)
    found |= {} if gain is None else {"joint_gain": asdict(gain)}
    found["diagnosis"] = asdict(model.diagnose(test).summary())
    return {"test": scores, "reliability": bins, "titles": titles, **found, **note}


def _networks(model: NodeClassifier) -> dict[str, str]:
    """The kinds of the networks that were kept, by their field of the recipe."""
    names = ("encoder", "edge_encoder", "label_encoder")
    return {name: getattr(model.recipe_, name).kind for name in names if hasattr(model.recipe_, name)}


def _candidates(model: NodeClassifier) -> list[dict[str, Any]]:
    """Networks that were tried, without their times: a run that continues must end with the same file."""
    rows = ({key: _rounded(value) for key, value in row.items() if key != "seconds"} for row in model.candidates_)
    return list(rows)


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _announce(data: Benchmark, model: NodeClassifier, run: Run, console: Console, start: str | None) -> None:
    kinds = (
        f"the networks of {escape(start)}"
        if start is not None
        else " and ".join(", ".join(names) for names in model.candidates(data.train))
    )
    counts = f"{len(data.train)} training, {len(data.val)} validation, {len(data.test)} test graphs"
    console.print(
        f"[bold]{escape(data.name)}[/]: {counts}; "
        f"{data.num_features} features, {data.num_states} states; {model.method} with {kinds}"
    )
    if isinstance(data, FolderBenchmark):
        show_columns(data.findings, console)
    if not data.val and have_mask(data.train, VAL_MASK):
        console.print("[dim]There is no val/: the labels in val_mask of the training graphs are validation data.[/]")
    elif not data.val:
        console.print("[dim]There is no val/: a fifth of the training data is held out as validation data.[/]")
    untreated = model.benchmark is None and model.resolve_features(data.train) == "raw"
    if untreated and scale_ratio(data.train) > WIDE_SCALE:
        console.print("[yellow]Features differ widely in scale; --features standardised may improve results.[/]")
    if has_checkpoint(run.path):
        console.print(f"[dim]Continuing from the checkpoint in {escape(str(run.path))}.[/]", soft_wrap=True)
