"""The table of methods on the citation sets: every method of the paper, its variants, and common baselines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Any

from accord._files import locked, write_text
from accord.experiments._citation import CITATION_ENCODERS, run_comparison, write_citation_table
from accord.experiments._paper import CITATION_SETS, PaperScore, paper_score
from accord.experiments._results import Result, file_stem, markdown_table, percent
from accord.experiments._runner import (
    PRESETS,
    SEEDS,
    Announce,
    adjust_recipe,
    check_choices,
    run_experiment,
    silence,
)
from accord.experiments._store import read_records, read_result, run_missing, usable
from accord.learning import Report
from accord.methods import Recipe, preset_features, preset_recipe

CONSISTENCY = 1.0  # weight of the appendix's penalty, which the paper does not give
METHODS_ENCODERS = ("gat", "gcnii", "unet")
MEASURE_TITLES = {"graph": "Graph accuracy", "node": "Node accuracy"}
FAR = 2.0  # standard deviations of the paper; a cell further below the paper's is marked

INTRODUCTION = """# Citation sets: all methods

Written by `accord reproduce methods`. Test accuracy in percent, mean ± standard deviation over seeds, with the paper's
figures (ten seeds). ▼ marks a cell more than two of the paper's standard deviations below the paper. All choices were
made on validation data; test graphs are scored once. The json files hold recipes, seeds, versions and hardware.

`appendix` is what preset `paper` was before it became the paper's letter: sizes, rates and sharpness of the appendix,
and tables divided by their own sums to the power 0.1.

The cells of GNN and SPN with GAT and GCNII are those of [results/citation](../citation/README.md): one training run
gives both, and it is stored there only.

"""


@dataclass(frozen=True)
class MethodVariant:
    """A row of the table: a method, and how its recipe differs from the preset's.

    Attributes:
        title: name in the table.
        method: name of the method.
        encoder: its only encoder; None for any.
        refine: whether an SPN is refined.
        changes: fields of the recipe.
    """

    title: str
    method: str
    encoder: str | None = None
    refine: bool = False
    changes: Mapping[str, Any] = field(default_factory=dict)

    def recipe(self, preset: str, encoder: str, benchmark: str) -> Recipe:
        """The preset's recipe with the changes."""
        found = preset_recipe(preset, encoder, benchmark=benchmark, method=self.method, refine=self.refine)
        return replace(found, **self.changes)


VARIANTS: dict[str, MethodVariant] = {
    "mlp": MethodVariant("MLP, no graph", "gnn", "mlp"),
    "gnn": MethodVariant("GNN", "gnn"),
    "smooth": MethodVariant("GNN, smoothed", "smooth"),
    "crf-linear": MethodVariant("CRF, linear", "crf", "linear"),
    "crf": MethodVariant("CRF, maximin game", "crf"),
    "crf-pl": MethodVariant("CRF, pseudolikelihood", "crf", changes={"objective": "pseudolikelihood"}),
    "gmnn": MethodVariant("GMNN", "gmnn"),
    "spn": MethodVariant("SPN", "spn"),
    "spn-shared": MethodVariant("SPN, one shared encoder", "spn", changes={"shared": True}),
    "spn-constrained": MethodVariant("SPN, consistency penalty", "spn", changes={"consistency": CONSISTENCY}),
    "spn-refined": MethodVariant("SPN, refined", "spn", refine=True),
}
IN_PAPER = ("gnn", "crf-linear", "crf", "gmnn", "spn")  # the paper's tables have these; other variants are not compared


def run_variant(variant: str, benchmark: str, encoder: str, preset: str = "accord", **options: Any) -> Result:
    """Train one variant and score it on the test graphs.

    Args:
        variant: name in VARIANTS.
        benchmark: a citation set.
        encoder: name of the encoder; ignored by variants that have their own.
        preset: "accord", "authors" or "paper".
        options: seeds, max_epochs, accelerator, folder and report, as of `run_experiment`.
    """
    chosen = VARIANTS[variant]
    encoder = chosen.encoder or encoder
    recipe = chosen.recipe(preset, encoder, benchmark)
    return run_experiment(
        chosen.method,
        recipe,
        benchmark,
        encoder,
        preset,
        lambda model, test: {variant: model.labels(test)},
        **options,
    )


def is_comparison(variant: str, encoder: str) -> bool:
    """Whether a cell belongs to the citation table, which trains GNN and SPN together."""
    return variant in ("gnn", "spn") and encoder in CITATION_ENCODERS


def reproduce_methods(
    folder: Path,
    benchmarks: Sequence[str] = CITATION_SETS,
    encoders: Sequence[str] = METHODS_ENCODERS,
    presets: Sequence[str] = PRESETS,
    variants: Sequence[str] = tuple(VARIANTS),
    seeds: Sequence[int] = SEEDS,
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Run the requested cells that are not stored yet, store each result, and write the table of everything stored.

    Args:
        folder: where results are stored; cells of the citation table go to the folder "citation" beside it.
        benchmarks: names of data sets.
        encoders: names of encoders.
        presets: names of presets.
        variants: names in VARIANTS.
        seeds: one replica each.
        max_epochs: None for the presets'.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each job, and with the numbers of each evaluation.
    """
    known = {
        "benchmark": (benchmarks, CITATION_SETS),
        "encoder": (encoders, METHODS_ENCODERS),
        "preset": (presets, PRESETS),
    }
    check_choices("methods", {**known, "method": (variants, tuple(VARIANTS))})
    jobs = dict.fromkeys(
        (preset, benchmark, variant, VARIANTS[variant].encoder or encoder)
        for preset in presets
        for benchmark in benchmarks
        for variant in variants
        for encoder in encoders
    )
    options: dict[str, Any] = {"seeds": seeds, "max_epochs": max_epochs, "accelerator": accelerator}
    with locked(folder):
        for preset, benchmark, variant, encoder in jobs:
            if is_comparison(variant, encoder):
                home = _citation_folder(folder)
                with locked(home):
                    run_comparison(home, benchmark, encoder, preset, announce, **options)
                    write_citation_table(home)
            else:
                _run_cell(folder, variant, benchmark, encoder, preset, announce, **options)
        return write_methods_table(folder)


def _run_cell(
    folder: Path,
    variant: str,
    benchmark: str,
    encoder: str,
    preset: str,
    announce: Announce,
    *,
    seeds: Sequence[int],
    max_epochs: int | None,
    accelerator: str,
) -> None:
    """Run the seeds of one cell that are not stored yet, and store them."""

    def run(missing: Sequence[int], unfinished: Path, report: Report) -> Result:
        options: dict[str, Any] = {"max_epochs": max_epochs, "accelerator": accelerator}
        options |= {"seeds": missing, "folder": unfinished, "report": report}
        return run_variant(variant, benchmark, encoder, preset, **options)

    recipe = adjust_recipe(VARIANTS[variant].recipe(preset, encoder, benchmark), max_epochs, accelerator)
    path = folder / f"{file_stem(preset, benchmark, variant, encoder)}.json"
    job, features = f"{preset} {benchmark} {variant} {encoder}", preset_features(preset, benchmark)
    run_missing(path, job, recipe, features, seeds, run, announce)


def _citation_folder(folder: Path) -> Path:
    return folder.parent / "citation"


def write_methods_table(folder: Path) -> str:
    """The table of all stored results, also written to README.md beside them."""
    read = usable(read_result, lambda result: methods_table([result]))
    shared = [result for result in read_records(_citation_folder(folder), read) if result.encoder in METHODS_ENCODERS]
    found = [*read_records(folder, read), *shared]
    presets = dict.fromkeys([*PRESETS, *(result.preset for result in found)])  # some were run before they were renamed
    by_preset = {preset: [result for result in found if result.preset == preset] for preset in presets}
    text = "\n".join(f"## Preset `{preset}`\n\n{methods_table(own)}" for preset, own in by_preset.items() if own)
    write_text(folder / "README.md", INTRODUCTION + text)
    return text


def methods_table(results: Sequence[Result]) -> str:
    """A table for each measure: a line for each variant and encoder, two columns for each data set."""
    return "\n".join(f"### {title}\n\n{_measure_table(results, name)}\n" for name, title in MEASURE_TITLES.items())


def _measure_table(results: Sequence[Result], measure: str) -> str:
    cells = {
        (variant, result.encoder, result.benchmark): scores[measure]
        for result in results
        for variant, scores in result.scores.items()
    }
    lines = []
    for variant, what in VARIANTS.items():
        for encoder in sorted({key[1] for key in cells if key[0] == variant}):
            line = [what.title, encoder]
            for benchmark in CITATION_SETS:
                paper = paper_score(measure, what.method, encoder, benchmark) if variant in IN_PAPER else None
                line += [_cell(cells.get((variant, encoder, benchmark)), paper), "" if paper is None else str(paper)]
            lines.append(line)
    return markdown_table(["method", "encoder", *(head for name in CITATION_SETS for head in (name, "paper"))], lines)


def _cell(values: Sequence[float] | None, paper: PaperScore | None) -> str:
    if values is None:
        return "-"
    low = paper is not None and 100 * mean(values) < paper.mean - FAR * paper.deviation
    return f"{percent(values)}{' ▼' if low else ''}"
