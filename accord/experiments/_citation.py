"""The citation table: GNN against SPN on Cora*, Citeseer* and Pubmed*, every encoder, every preset."""

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from accord.experiments._announce import Announce, silence
from accord.experiments._choices import check_choices
from accord.experiments._comparison import compare, read_comparisons
from accord.experiments._tables import comparison_table

BENCHMARKS = ("cora*", "citeseer*", "pubmed*")
ENCODERS = ("gcn", "gat", "gcnii")
PRESETS = ("accord", "paper")

INTRODUCTION = """# Citation sets: GNN against the SPN built on it

Written by `accord reproduce citation`. Test accuracy in percent, mean ± standard deviation over seeds; *graph*: every
node of a test graph right; *unseen*: nodes that occur in no training graph (ego networks overlap). GNN and SPN share
the node network, so each seed is a pair; p is a two-sided paired t-test on graph accuracy. All choices were made on
validation data. The paper's figures (10 seeds) are beside ours. Configuration, seeds, versions, hardware and commit are
in the json files.

"""


def reproduce_citation(
    folder: Path,
    benchmarks: Sequence[str] = BENCHMARKS,
    encoders: Sequence[str] = ENCODERS,
    presets: Sequence[str] = PRESETS,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Run what is asked for, store each result as it comes, and write the table of all that is stored.

    Args:
        folder: where results go; those that are there already are shown too.
        benchmarks: which data sets.
        encoders: which encoders.
        presets: which presets.
        seeds: one replica each.
        max_epochs: None for the presets'.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of the job, and with a row at every look at validation data.
    """
    folder.mkdir(parents=True, exist_ok=True)
    check_choices(
        "citation",
        {"benchmark": (benchmarks, BENCHMARKS), "encoder": (encoders, ENCODERS), "preset": (presets, PRESETS)},
        "is not in this table",
    )
    for preset in presets:
        for benchmark in benchmarks:
            for encoder in encoders:
                job = f"{preset} {benchmark} {encoder}"
                announce(job, None)
                unfinished = folder / f"unfinished-{preset}-{benchmark.rstrip('*')}-{encoder}"
                result = compare(
                    benchmark,
                    encoder,
                    preset,
                    seeds,
                    max_epochs=max_epochs,
                    accelerator=accelerator,
                    folder=unfinished,
                    report=partial(announce, job),
                )
                result.write(folder)
                shutil.rmtree(unfinished)
    return write_table(folder)


def write_table(folder: Path) -> str:
    """The table of all stored results, also as README.md beside them."""
    table = comparison_table(read_comparisons(folder))
    (folder / "README.md").write_text(INTRODUCTION + table + "\n")
    return table
