"""The citation table: GNN and SPN on Cora*, Citeseer* and Pubmed*, with the same node network."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from torch import Tensor

from accord._files import locked, write_text
from accord.experiments._paper import CITATION_SETS, paper_score
from accord.experiments._results import Result, file_stem, percent
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
from accord.graphs import GraphBatch
from accord.learning import Report
from accord.methods import FieldModel, preset_features, preset_recipe

CITATION_ENCODERS = ("gcn", "gat", "gcnii")

INTRODUCTION = """# Citation sets: GNN and SPN

Written by `accord reproduce citation`. Test accuracy in percent, mean ± standard deviation over seeds. *Graph*: every
node of a test graph is right. *Unseen*: nodes that occur in no training graph (ego networks overlap). GNN and SPN share
the node network, so each seed is a pair; p is a two-sided paired t-test on graph accuracy. All choices were made on
validation data. The last column has the paper's figures (10 seeds). The json files hold configuration, seeds, versions,
hardware and commit. `appendix` is what preset `paper` was before it became the paper's letter: sizes, rates and
sharpness of the appendix, and tables divided by their own sums to the power 0.1.
[results/methods](../methods/README.md) shows the same cells beside other methods.

"""


def compare(benchmark: str, encoder: str, preset: str = "accord", **options: Any) -> Result:
    """Train an SPN, and score it and its node network alone (the GNN) on the test graphs.

    Args:
        benchmark: a benchmark with one label per node.
        encoder: name of the encoder of both networks.
        preset: "accord", "authors" or "paper".
        options: seeds, features, max_epochs, accelerator, folder and report, as of `run_experiment`.
    """
    recipe = preset_recipe(preset, encoder, benchmark=benchmark)
    return run_experiment("spn", recipe, benchmark, encoder, preset, _label_both, **options)


def _label_both(model: FieldModel, test: GraphBatch) -> dict[str, Tensor]:
    return {"gnn": model.node_logits(test).argmax(-1), "spn": model.labels(test)}


def run_comparison(
    folder: Path,
    benchmark: str,
    encoder: str,
    preset: str,
    announce: Announce,
    *,
    seeds: Sequence[int],
    max_epochs: int | None,
    accelerator: str,
) -> None:
    """Run the seeds of one comparison that are not stored yet, and store them in the folder of this table."""

    def run(missing: Sequence[int], unfinished: Path, report: Report) -> Result:
        options: dict[str, Any] = {"max_epochs": max_epochs, "accelerator": accelerator}
        return compare(benchmark, encoder, preset, seeds=missing, folder=unfinished, report=report, **options)

    recipe = adjust_recipe(preset_recipe(preset, encoder, benchmark=benchmark), max_epochs, accelerator)
    path = folder / f"{file_stem(preset, benchmark, encoder)}.json"
    features = preset_features(preset, benchmark)
    run_missing(path, f"{preset} {benchmark} {encoder}", recipe, features, seeds, run, announce)


def reproduce_citation(
    folder: Path,
    benchmarks: Sequence[str] = CITATION_SETS,
    encoders: Sequence[str] = CITATION_ENCODERS,
    presets: Sequence[str] = PRESETS,
    seeds: Sequence[int] = SEEDS,
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Run the requested cells that are not stored yet, store each, and write the table of everything stored.

    Args:
        folder: where results are stored; the table includes those that are there already.
        benchmarks: names of data sets.
        encoders: names of encoders.
        presets: names of presets.
        seeds: one replica each.
        max_epochs: None for the presets'.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each job, and with the numbers of each evaluation.
    """
    check_choices(
        "citation",
        {
            "benchmark": (benchmarks, CITATION_SETS),
            "encoder": (encoders, CITATION_ENCODERS),
            "preset": (presets, PRESETS),
        },
    )
    options: dict[str, Any] = {"seeds": seeds, "max_epochs": max_epochs, "accelerator": accelerator}
    with locked(folder):
        for preset, benchmark, encoder in product(presets, benchmarks, encoders):
            run_comparison(folder, benchmark, encoder, preset, announce, **options)
        return write_citation_table(folder)


def write_citation_table(folder: Path) -> str:
    """The table of all stored results, also written to README.md beside them."""
    table = citation_table(read_records(folder, usable(read_result, lambda result: citation_table([result]))))
    write_text(folder / "README.md", f"{INTRODUCTION}{table}\n")
    return table


def citation_table(results: Sequence[Result]) -> str:
    """A line for each data set, encoder and preset: GNN and SPN in percent, with the paper's figures."""
    head = (
        "| data | encoder | preset | seeds | GNN graph | SPN graph | p | GNN node | SPN node | "
        "GNN unseen | SPN unseen | paper GNN / SPN graph |"
    )
    lines = [head, "|" + "---|" * 12]
    for result in results:
        graph, node, unseen = (
            [percent(result.scores[way][measure]) for way in ("gnn", "spn")]
            for measure in ("graph", "node", "node_unseen")
        )
        p = result.p_value("spn", "gnn", "graph")
        paper = [paper_score("graph", way, result.encoder, result.benchmark) for way in ("gnn", "spn")]
        cells = [result.benchmark, result.encoder, result.preset, str(len(result.seeds))]
        cells += [*graph, "-" if p != p else f"{p:.3f}", *node, *unseen]
        cells.append(" / ".join("-" if score is None else f"{score.mean:.1f}" for score in paper))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
