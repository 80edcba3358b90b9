"""The run-time table: GNN, SPN and CRF with the same data, epochs and encoder, as ratios."""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord._files import locked, sealed, write_json, write_text
from accord.datasets import Benchmark, load_benchmark
from accord.errors import InputError
from accord.experiments._provenance import provenance
from accord.experiments._results import file_stem, markdown_table
from accord.experiments._runner import PRESETS, Announce, check_choices, silence
from accord.experiments._store import read_record, read_records, read_stored, refuse_other, usable
from accord.learning import Replicas, TrainingRun
from accord.methods import METHODS, Shape, SPNRecipe, preset_features, preset_recipe

TIMED_METHODS = ("gnn", "spn", "crf")
TIMED_SETS, TIMED_ENCODERS = ("cora*", "ppi-1"), ("gat", "gcn", "gcnii")
PAPER_RATIOS = {"spn": 962.92 / 460.81, "crf": 27136.90 / 460.81}  # GAT on PPI (Table 3 of the paper)
TIMED_EPOCHS = 40  # the difference between twice as many and these is timed, so that set-up cancels
REPEATS = 5

INTRODUCTION = """# Run time: GNN, SPN, CRF

Written by `accord reproduce run-time`. Training time per epoch without evaluations, with the same encoder, data (one
seed; one label of PPI) and updates. Ratios to the GNN, medians of {repeats} interleaved repeats. The paper's ratios are
those of GAT on PPI. An SPN trains two networks. A CRF also needs the field's own marginals at every update; here they
come from a fused kernel.

"""


def reproduce_run_time(
    folder: Path,
    benchmarks: Sequence[str] = TIMED_SETS,
    encoders: Sequence[str] = ("gat",),
    presets: Sequence[str] = ("accord",),
    seeds: Sequence[int] = (1,),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Time the requested cells that are not stored yet, store each, and write the table of everything stored.

    Args:
        folder: where results are stored.
        benchmarks: "cora*" and "ppi-1".
        encoders: names of encoders.
        presets: names of presets.
        seeds: only the first is used.
        max_epochs: epochs of the shorter of the two runs that are compared; None for TIMED_EPOCHS.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of each job.
    """
    check_choices(
        "run-time",
        {
            "benchmark": (benchmarks, TIMED_SETS),
            "encoder": (encoders, TIMED_ENCODERS),
            "preset": (presets, PRESETS),
        },
    )
    epochs = max_epochs or TIMED_EPOCHS
    facts = provenance(torch.device("cpu") if accelerator == "cpu" else None)
    with locked(folder):
        for preset, benchmark, encoder in product(presets, benchmarks, encoders):
            path = folder / f"{file_stem(preset, benchmark, encoder, facts['device'].split(':')[0])}.json"
            stored = read_stored(path, usable(read_record, _table_line))
            if stored is not None:
                before = stored.get("epochs", TIMED_EPOCHS)  # records of older versions do not hold it
                refuse_other(path, {"max_epochs": (before, epochs)} if before != epochs else {})
                continue
            announce(f"{preset} {benchmark} {encoder}", None)
            bench = load_benchmark(benchmark, features=preset_features(preset, benchmark))
            seconds = _time_methods(bench, encoder, preset, seeds[0], epochs, accelerator)
            found = {"benchmark": benchmark, "encoder": encoder, "preset": preset, "epochs": epochs, "seconds": seconds}
            write_json(path, sealed({**found, "provenance": facts}))
        return _write_table(folder)


def _time_methods(
    bench: Benchmark, encoder: str, preset: str, seed: int, epochs: int, accelerator: str
) -> dict[str, list[float]]:
    """Seconds per epoch of each method for each repeat; methods alternate, so that all see the same machine."""
    seconds: dict[str, list[float]] = {method: [] for method in TIMED_METHODS}
    train, held_out = first_label(bench.train), first_label(bench.val[:1])
    for repeat in range(REPEATS + 1):
        for method in TIMED_METHODS:
            edge_encoder = None if method == "gnn" else encoder  # the same as for nodes
            recipe = preset_recipe(preset, encoder, edge_encoder, bench.name, method)
            whole = []
            for count in (epochs, 2 * epochs):
                training = replace(
                    recipe.training, max_epochs=count, evaluate_every=count, accelerator=accelerator, patience=None
                )
                one = replace(recipe, training=training)
                if isinstance(one, SPNRecipe):
                    one = replace(one, grid=replace(one.grid, sharpness=(1.0,), power=(1.0,)))
                shape = Shape(bench.num_features, bench.num_states)
                begin = time.perf_counter()
                METHODS[method](one).fit(TrainingRun(train, held_out), shape, Replicas((seed,)))
                whole.append(time.perf_counter() - begin)
            if repeat:  # the first one warms up
                seconds[method].append((whole[1] - whole[0]) / epochs)
        if repeat and min(values[-1] for values in seconds.values()) <= 0:
            raise InputError("reproduce run-time: another process slowed this machine down. Run it again.")
    return seconds


def first_label(graphs: Sequence[Data]) -> list[Data]:
    """The graphs with one label per node."""
    picked = []
    for graph in graphs:
        copy = graph.clone()
        assert isinstance(graph.y, Tensor)  # benchmarks are labelled
        copy.y = graph.y if graph.y.dim() == 1 else graph.y[:, 0]
        picked.append(copy)
    return picked


def _table_line(found: dict[str, Any]) -> list[str]:
    middle = {method: median(values) for method, values in found["seconds"].items()}
    ratios = [f"{middle[method] / middle['gnn']:.1f}x" for method in ("spn", "crf")]
    paper = f"{PAPER_RATIOS['spn']:.1f}x, {PAPER_RATIOS['crf']:.0f}x" if found["encoder"] == "gat" else ""
    device = found["provenance"]["device"].split(":")[0]
    return [found["benchmark"], found["encoder"], found["preset"], device, f"{1e3 * middle['gnn']:.1f}", *ratios, paper]


def _write_table(folder: Path) -> str:
    lines = [_table_line(found) for found in read_records(folder, usable(read_record, _table_line))]
    head = ["data", "encoder", "preset", "device", "ms per epoch: GNN", "SPN / GNN", "CRF / GNN", "paper"]
    table = f"{markdown_table(head, lines)}\n"
    write_text(folder / "README.md", INTRODUCTION.format(repeats=REPEATS) + table)
    return table
