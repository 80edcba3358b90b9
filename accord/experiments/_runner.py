"""What all tables share: progress reports, checks of the requested names, and training followed by one test."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from accord.datasets import Benchmark, load_benchmark
from accord.errors import OptionError
from accord.evaluation import graph_accuracy, node_accuracy, unseen_nodes
from accord.experiments._provenance import provenance
from accord.experiments._results import Result, Scores
from accord.graphs import GraphBatch
from accord.learning import HistoryRow, Replicas, Report, TrainingRun
from accord.methods import METHODS, FieldModel, ProxyModel, Recipe, Shape, preset_features, recipe_to_config

PRESETS = ("accord", "authors", "paper")
SEEDS = (1, 2, 3, 4, 5)

Announce = Callable[
    [str, HistoryRow | None], None
]  # called with a job's name and None, then with each evaluation's numbers
Label = Callable[[FieldModel, GraphBatch], dict[str, Tensor]]  # labels [replicas, nodes] by way of labelling


def silence(job: str, row: HistoryRow | None) -> None:
    """Report nothing."""


def check_choices(table: str, choices: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> None:
    """Refuse names that a table does not have, before anything is run.

    Args:
        table: its name, for the message.
        choices: requested names and known names, by kind.
    """
    for kind, (requested, known) in choices.items():
        for name in requested:
            if name not in known:
                raise OptionError(
                    f"reproduce {table}: {kind} {name!r} is not in this table. Choose from {', '.join(known)}."
                )


def run_experiment(
    method: str,
    recipe: Recipe,
    benchmark: str,
    encoder: str,
    preset: str,
    label: Label,
    *,
    seeds: Sequence[int] = SEEDS,
    features: str | None = None,
    max_epochs: int | None = None,
    accelerator: str = "auto",
    folder: Path | None = None,
    report: Report | None = None,
) -> Result:
    """Train all seeds side by side on a benchmark with one label per node, and test once at the end.

    Args:
        method: name of the method.
        recipe: its recipe.
        benchmark: name of the benchmark.
        encoder: name of the encoder, for the record.
        preset: name of the preset, which decides the treatment of the features.
        label: labels the test graphs.
        seeds: one replica each.
        features: treatment of the features; None for the preset's.
        max_epochs: None for the recipe's.
        accelerator: "auto", "cpu" or "cuda".
        folder: where to keep a checkpoint, to resume after an interruption.
        report: called with the numbers of each evaluation.
    """
    features = features or preset_features(preset, benchmark)
    bench = load_benchmark(benchmark, features=features)
    recipe = adjust_recipe(recipe, max_epochs, accelerator)
    begin = time.perf_counter()
    model = METHODS[method](recipe, bench.level).fit(
        TrainingRun(bench.train, bench.val, folder, report),
        Shape(bench.num_features, bench.num_states),
        Replicas(tuple(seeds)),
    )
    seconds = time.perf_counter() - begin
    device = next(iter(model.tensors().values())).device
    test = GraphBatch.collate(bench.test).to(device)
    return Result(
        benchmark=bench.name,
        encoder=encoder,
        preset=preset,
        features=features or "the benchmark's",
        seeds=tuple(seeds),
        scores={way: measure(labels, test, bench) for way, labels in label(model, test).items()},
        chosen=_chosen(model),
        seconds=seconds,
        recipe=recipe_to_config(recipe),
        provenance=[provenance(device)],
    )


def adjust_recipe(recipe: Recipe, max_epochs: int | None, accelerator: str) -> Recipe:
    """A recipe with the requested epochs (None for its own) and device."""
    training = replace(recipe.training, accelerator=accelerator)
    return replace(recipe, training=training if max_epochs is None else replace(training, max_epochs=max_epochs))


def measure(labels: Tensor, test: GraphBatch, bench: Benchmark) -> Scores:
    """Fractions for each replica; `node_unseen` counts only nodes that occur in no training graph."""
    assert test.y is not None
    truth = test.y[None]
    unseen = unseen_nodes(bench.train, bench.test)
    hidden = truth if unseen is None else truth.masked_fill(~unseen.to(truth.device), -1)
    return {
        "graph": graph_accuracy(labels, truth, test.topology).tolist(),
        "node": node_accuracy(labels, truth).tolist(),
        "node_unseen": node_accuracy(labels, hidden).tolist(),
    }


def _chosen(model: FieldModel) -> list[dict[str, float]]:
    if not isinstance(model, ProxyModel):
        return []
    columns = {name: values.double().cpu().tolist() for name, values in model.chosen.tensors().items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
