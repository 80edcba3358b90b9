"""`accord fit`: train in a run folder, evaluate once on test graphs at the end, write the report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from accord._version import library_versions
from accord.app.commands.report import write_report
from accord.app.progress import TrainingProgress
from accord.app.runs import CASES, REPORT, RESULTS, SEEN, Run, has_checkpoint, start_run
from accord.app.scores import part_titles, score_table
from accord.app.settings import FitSettings, override_recipe
from accord.app.sources import benchmark_name, widest_scale
from accord.datasets import Benchmark, DigitsBenchmark
from accord.estimator import NodeClassifier
from accord.evaluation import Scores, choose_cases, reliability, score_answers, unseen_nodes
from accord.experiments import provenance
from accord.graphs import fingerprint_graphs
from accord.methods import METHODS, recipe_to_config

WIDE = 100.0  # times: beyond this, features on one scale drown those on another


@dataclass(frozen=True)
class ExtraRows:
    """Rows that a caller adds to the table of results, beside the model's own parts."""

    scores: Callable[[NodeClassifier], dict[str, Scores]]
    titles: Mapping[str, str]  # of all rows, in their order
    note: str  # what they mean, for the report


def fit_run(
    data: Benchmark,
    settings: FitSettings,
    path: Path,
    console: Console,
    extra: ExtraRows | None = None,
    marks: Mapping[str, Any] | None = None,
) -> Run:
    """Train the model that the settings describe, or continue; a finished run is shown, not repeated.

    Args:
        data: the graphs.
        settings: how to train.
        path: the run folder.
        console: for messages.
        extra: further rows of the table of results.
        marks: further keys of config.json, by which a command recognises its own runs.
    """
    model = build_model(data, settings)
    run = start_run(path, run_config(data, settings, model) | dict(marks or {}))
    if run.finished:
        console.print(f"[dim]{path} is finished already; remove it, or choose another with --run, to train again.[/]")
        return run
    _announce(data, model, run, console)
    began = time.perf_counter()
    train(model, data, run, console)
    seconds = time.perf_counter() - began
    device = next(iter(model.model_.tensors().values())).device
    results = evaluate_once(model, data, run, extra)
    run.write(RESULTS, results | {"seconds": round(seconds, 2), **provenance(device)})
    write_report(run)
    return run


def show_run(run: Run, console: Console) -> None:
    """Print the table of a finished run, and where its report is."""
    results = run.read(RESULTS)
    if "test" in results:
        title = f"{run.config['data']['name']}, {run.config['data']['graphs']['test']} test graphs"
        console.print(score_table(results["test"], title, results["titles"]))
    console.print(f"Report: {run.path / REPORT}", soft_wrap=True)


def build_model(data: Benchmark, settings: FitSettings) -> NodeClassifier:
    """The untrained model of these settings; what cannot be used is refused here, before a file is written."""
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
        num_states=data.num_states,
        label_names=data.label_names,
        accelerator=settings.accelerator,
        features=settings.features,
        task_names=data.task_names,
    )
    recipe = model.resolve_recipe()
    return model.set_params(recipe=override_recipe(recipe, settings.recipe)) if settings.recipe else model


def run_config(data: Benchmark, settings: FitSettings, model: NodeClassifier) -> dict[str, Any]:
    """The content of config.json: everything that the result depends on."""
    return {
        "settings": settings.plain() | {"level": model.level, "features": model.resolve_features()},
        "recipe": recipe_to_config(model.resolve_recipe()),
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


def train(model: NodeClassifier, data: Benchmark, run: Run, console: Console) -> None:
    """Fit the model and save it in the run folder, with the numbers of the nodes it has seen."""
    epochs = METHODS[model.method](model.resolve_recipe()).epochs
    with TrainingProgress(run.path, epochs, console) as progress:
        model.fit(data.train, data.val or None, folder=run.path, report=progress)
    if all("node_id" in graph for graph in data.train):
        np.savez(run.path / SEEN, node_id=torch.cat([graph.node_id for graph in data.train]).unique().numpy())
    model.save(run.path)


def evaluate_once(model: NodeClassifier, data: Benchmark, run: Run, extra: ExtraRows | None = None) -> dict[str, Any]:
    """Everything that is said about test graphs, which nothing has read before."""
    chosen = {name: [_rounded(value) for value in values] for name, values in model.choice_.items()}
    test = data.test
    if not any(graph.y is not None and bool((graph.y >= 0).any()) for graph in test):
        return {"chosen": chosen}
    answers = model.answers(test)
    assert answers.truth is not None
    scores = score_answers(answers, unseen_nodes(data.train, test))
    titles: dict[str, str] = {name: part_titles(model.method)[name] for name in scores}
    note: dict[str, str] = {}
    if extra is not None:
        scores |= extra.scores(model)
        scores = {name: scores[name] for name in extra.titles}
        titles, note = dict(extra.titles), {"note": extra.note}
    images = torch.cat([graph.x for graph in test]) if isinstance(data, DigitsBenchmark) else None
    run.write(CASES, [case.plain() for case in choose_cases(answers, images)])
    bins = {
        name: asdict(reliability(probabilities.flatten(0, 1), answers.truth.flatten()))
        for name, probabilities in answers.probabilities.items()
    }
    return {"test": scores, "reliability": bins, "chosen": chosen, "titles": titles, **note}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _announce(data: Benchmark, model: NodeClassifier, run: Run, console: Console) -> None:
    recipe = model.resolve_recipe()
    networks = [getattr(recipe, name, None) for name in ("encoder", "edge_encoder", "label_encoder")]
    kinds = " and ".join(dict.fromkeys(network.kind for network in networks if network is not None))
    counts = f"{len(data.train)} training, {len(data.val)} validation, {len(data.test)} test graphs"
    console.print(
        f"[bold]{data.name}[/]: {counts}; "
        f"{data.num_features} features, {data.num_states} states; {model.method} with {kinds}"
    )
    if not data.val:
        console.print("[dim]There is no val/: a fifth of the training data is held out to choose by.[/]")
    untreated = model.benchmark is None and model.resolve_features() == "raw"
    if untreated and widest_scale(data.train) > WIDE:
        console.print("[yellow]Features differ widely in scale; --features standardised may help much.[/]")
    if has_checkpoint(run.path):
        console.print(f"[dim]Continuing from the checkpoint in {run.path}.[/]")
