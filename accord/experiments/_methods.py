"""Every row of the paper's tables on the citation sets, and peers that users know, each trained by its own method."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from accord.datasets import load_benchmark
from accord.experiments._announce import Announce, silence
from accord.experiments._choices import check_choices
from accord.experiments._comparison import measure
from accord.experiments._methods_table import methods_table
from accord.experiments._paper import SETS
from accord.experiments._provenance import provenance
from accord.experiments._result import Result, Row, read_results
from accord.graphs import GraphBatch
from accord.learning import Replicas, Report, TrainingRun
from accord.methods import METHODS, Shape, preset_features, recipe_to_config

CONSISTENCY = 1.0  # weight of the appendix's penalty, which the paper does not give


ROWS: dict[str, Row] = {
    "mlp": Row("MLP, no graph", "gnn", "mlp"),
    "gnn": Row("GNN", "gnn"),
    "smooth": Row("GNN, smoothed", "smooth"),
    "crf-linear": Row("CRF, linear", "crf", "linear"),
    "crf": Row("CRF, maximin game", "crf"),
    "crf-pl": Row("CRF, pseudolikelihood", "crf", changes={"objective": "pseudolikelihood"}),
    "gmnn": Row("GMNN", "gmnn"),
    "spn": Row("SPN", "spn"),
    "spn-shared": Row("SPN, one shared encoder", "spn", changes={"shared": True}),
    "spn-constrained": Row("SPN, consistency penalty", "spn", changes={"consistency": CONSISTENCY}),
    "spn-refined": Row("SPN, refined", "spn", refine=True),
}
ENCODERS, PRESETS = ("gat", "gcnii", "unet"), ("accord", "paper")

INTRODUCTION = """# Citation sets: every method

Written by `accord reproduce methods`. Test accuracy in percent, mean ± standard deviation over seeds, the paper's (ten
seeds) beside ours; ▼ marks a cell more than two of the paper's standard deviations below it. All choices were made on
validation data; test graphs are looked at once. Recipes, seeds, versions and hardware are in the json files.

"""


def run_row(
    row: str,
    benchmark: str,
    encoder: str,
    preset: str = "accord",
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    folder: Path | None = None,
    report: Report | None = None,
) -> Result:
    """Train one row, all seeds side by side; look at the test graphs once, at the end.

    Args:
        row: name in ROWS.
        benchmark: a citation set.
        encoder: name of the encoder; rows that have their own ignore it.
        preset: "accord" or "paper".
        seeds: one replica each.
        max_epochs: None for the preset's.
        accelerator: "auto", "cpu" or "cuda".
        folder: where to keep a checkpoint, to go on after an interruption.
        report: called with a row of numbers at every look at validation data.
    """
    encoder = ROWS[row].encoder or encoder
    features = preset_features(preset, benchmark)
    bench = load_benchmark(benchmark, features=features)
    recipe = ROWS[row].recipe(preset, encoder, benchmark)
    training = replace(recipe.training, accelerator=accelerator)
    recipe = replace(recipe, training=replace(training, max_epochs=max_epochs) if max_epochs else training)
    begin = time.perf_counter()
    model = METHODS[ROWS[row].method](recipe, bench.level).fit(
        TrainingRun(bench.train, bench.val, folder, report),
        Shape(bench.num_features, bench.num_states),
        Replicas(tuple(seeds)),
    )
    seconds = time.perf_counter() - begin
    device = next(iter(model.tensors().values())).device
    test = GraphBatch.collate(bench.test).to(device)
    return Result(
        row=row,
        benchmark=benchmark,
        features=features or "the benchmark's",
        encoder=encoder,
        preset=preset,
        seeds=tuple(seeds),
        scores=measure(model.labels(test), test, bench),
        seconds=seconds,
        recipe=recipe_to_config(recipe),
        provenance=provenance(device),
    )


def reproduce_methods(
    folder: Path,
    benchmarks: Sequence[str] = SETS,
    encoders: Sequence[str] = ENCODERS,
    presets: Sequence[str] = PRESETS,
    rows: Sequence[str] = tuple(ROWS),
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Run what is asked for and is not stored yet, store each result as it comes, and write the table of all.

    Args:
        folder: where results go; those that are there already are kept and shown.
        benchmarks: which data sets.
        encoders: which encoders.
        presets: which presets.
        rows: names in ROWS.
        seeds: one replica each.
        max_epochs: None for the presets'.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of the job, and with a row at every look at validation data.
    """
    known = {"benchmark": (benchmarks, SETS), "encoder": (encoders, ENCODERS), "preset": (presets, PRESETS)}
    check_choices("methods", {**known, "method": (rows, tuple(ROWS))}, "is not in this table")
    jobs = dict.fromkeys(
        (preset, benchmark, row, ROWS[row].encoder or encoder)
        for preset in presets
        for benchmark in benchmarks
        for row in rows
        for encoder in encoders
    )
    for preset, benchmark, row, encoder in jobs:
        job = f"{preset} {benchmark} {row} {encoder}"
        stem = f"{preset}-{benchmark.rstrip('*')}-{row}-{encoder}"
        if (folder / f"{stem}.json").is_file():
            continue
        announce(job, None)
        unfinished = folder / f"unfinished-{stem}"
        result = run_row(
            row, benchmark, encoder, preset, seeds, max_epochs, accelerator, unfinished, partial(announce, job)
        )
        result.write(folder)
        shutil.rmtree(unfinished, ignore_errors=True)  # a run that ended at once left none
    return write_methods_table(folder)


def write_methods_table(folder: Path) -> str:
    """The table of all stored results, also as README.md beside them."""
    found = read_results(folder)
    text = "\n".join(
        f"## Preset `{preset}`\n\n{methods_table(own, ROWS)}" for preset in PRESETS if (own := _of(found, preset))
    )
    (folder / "README.md").write_text(INTRODUCTION + text)
    return text


def _of(results: Sequence[Result], preset: str) -> list[Result]:
    return [result for result in results if result.preset == preset]
