"""The run-time table: GNN, SPN and CRF on the same data, for the same epochs, with the same encoder, as ratios."""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.datasets import Benchmark, load_benchmark
from accord.errors import InputError
from accord.experiments._announce import Announce, silence
from accord.experiments._choices import check_choices
from accord.experiments._provenance import provenance
from accord.learning import Replicas, TrainingRun
from accord.methods import METHODS, Shape, SPNRecipe, preset_features, preset_recipe

METHODS_TIMED = ("gnn", "spn", "crf")
BENCHMARKS, ENCODERS, PRESETS = ("cora*", "ppi-1"), ("gat", "gcn", "gcnii"), ("accord", "paper")
PAPER = {"gnn": 1.0, "spn": 962.92 / 460.81, "crf": 27136.90 / 460.81}  # GAT on PPI (Tab. 3 of the paper), as ratios
EPOCHS = 40  # the difference between twice as many and these is what is timed: set-up drops out
REPEATS = 5

INTRODUCTION = """# Run time: GNN, SPN, CRF

Written by `accord reproduce run-time`. Training time an epoch, the same encoder, data (one seed; of PPI one label) and
updates, without looks at validation data; ratios to the GNN, medians of {repeats} interleaved repeats. The paper's are
those of GAT on PPI. An SPN trains two networks; a CRF needs the field's own marginals at every update on top, and here
they come from a fused kernel.

"""


def reproduce_run_time(
    folder: Path,
    benchmarks: Sequence[str] = BENCHMARKS,
    encoders: Sequence[str] = ("gat",),
    presets: Sequence[str] = ("accord",),
    seeds: Sequence[int] = (1,),
    max_epochs: int | None = None,
    accelerator: str = "auto",
    announce: Announce = silence,
) -> str:
    """Time what is asked for, store it, and write the table of all that is stored.

    Args:
        folder: where results go.
        benchmarks: "cora*" and "ppi-1".
        encoders: which encoders.
        presets: which presets.
        seeds: the first is taken.
        max_epochs: epochs of the shorter of the two runs that are compared; None for a few.
        accelerator: "auto", "cpu" or "cuda".
        announce: called with the name of the job.
    """
    check_choices(
        "run-time",
        {"benchmark": (benchmarks, BENCHMARKS), "encoder": (encoders, ENCODERS), "preset": (presets, PRESETS)},
        "is not timed",
    )
    folder.mkdir(parents=True, exist_ok=True)
    for preset in presets:
        for benchmark in benchmarks:
            bench = load_benchmark(benchmark, features=preset_features(preset, benchmark))
            for encoder in encoders:
                announce(f"{preset} {benchmark} {encoder}", None)
                seconds = _time_methods(bench, encoder, preset, seeds[0], max_epochs or EPOCHS, accelerator)
                stored = {"benchmark": benchmark, "encoder": encoder, "preset": preset, "seconds": seconds}
                where = provenance(torch.device("cpu") if accelerator == "cpu" else None)
                path = folder / f"{preset}-{benchmark.rstrip('*')}-{encoder}-{where['device'].split(':')[0]}.json"
                path.write_text(json.dumps({**stored, "provenance": where}, indent=1) + "\n")
    return _write_table(folder)


def _time_methods(
    bench: Benchmark, encoder: str, preset: str, seed: int, epochs: int, accelerator: str
) -> dict[str, list[float]]:
    """Seconds an epoch for each method, one number a repeat; methods take turns, so that all see the same machine."""
    seconds: dict[str, list[float]] = {method: [] for method in METHODS_TIMED}
    train, held_out = _first_task(bench.train), _first_task(bench.val[:1])
    for repeat in range(REPEATS + 1):
        for method in METHODS_TIMED:
            recipe = preset_recipe(preset, encoder, encoder, bench.name, method)  # the same for nodes and edges
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
            if repeat:  # the first is for warming up
                seconds[method].append((whole[1] - whole[0]) / epochs)
        if repeat and min(values[-1] for values in seconds.values()) <= 0:
            raise InputError("reproduce run-time: something else slowed this machine down meanwhile. Run it again.")
    return seconds


def _first_task(graphs: Sequence[Data]) -> list[Data]:
    """Graphs with one label a node."""
    picked = []
    for graph in graphs:
        copy = graph.clone()
        assert isinstance(graph.y, Tensor)  # benchmarks are labelled
        copy.y = graph.y if graph.y.dim() == 1 else graph.y[:, 0]
        picked.append(copy)
    return picked


def _write_table(folder: Path) -> str:
    head = ["data", "encoder", "preset", "device", "ms an epoch: GNN", "SPN / GNN", "CRF / GNN", "paper"]
    lines = [head, ["---"] * len(head)]
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text())
        middle = {method: median(values) for method, values in found["seconds"].items()}
        ratios = [f"{middle[method] / middle['gnn']:.1f}x" for method in ("spn", "crf")]
        paper = f"{PAPER['spn']:.1f}x, {PAPER['crf']:.0f}x" if found["encoder"] == "gat" else ""
        device = found["provenance"]["device"].split(":")[0]
        cells = [found["benchmark"], found["encoder"], found["preset"], device, f"{1e3 * middle['gnn']:.1f}"]
        lines.append([*cells, *ratios, paper])
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
    (folder / "README.md").write_text(INTRODUCTION.format(repeats=REPEATS) + table)
    return table
