"""Time of training epochs on graphs in memory and on the same graphs streamed from disk, in one run.

    OMP_NUM_THREADS=1 python benchmarks/learning/streaming.py results/distributed --graphs 3000 --nodes 30
    OMP_NUM_THREADS=1 python benchmarks/learning/streaming.py results/distributed --graphs 300 --nodes 300

Both are trained in turn, several times. Adds a row to streaming.json and streaming.md: the least seconds of an epoch of
each, their ratio, and how long the files took to be read.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord._files import write_json, write_text
from accord.bench.inference._machine import processor_name
from accord.datasets import GraphFiles, read_graphs, write_graphs
from accord.encoders import GCN
from accord.experiments._provenance import provenance
from accord.methods import preset_recipe

FEATURES, STATES, HELD_OUT, ROUNDS = 32, 5, 8, 3


def made_graph(seed: int, nodes: int) -> Data:
    """Random edges, four to a node, and labels that the features show."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, STATES, (nodes,), generator=generator)
    x = torch.randn(nodes, FEATURES, generator=generator)
    x[:, :STATES] += torch.nn.functional.one_hot(y, STATES)
    return Data(x=x, edge_index=torch.randint(0, nodes, (2, 4 * nodes), generator=generator), y=y)


def least_epoch(train: Sequence[Data], validation: list[Data], method: str, batch: int, epochs: int) -> float:
    """The least seconds of an epoch of one training."""
    recipe = preset_recipe(encoder=GCN(hidden=64), edge_encoder=GCN(hidden=64), method=method)
    recipe = replace(recipe, training=replace(recipe.training, batch_graphs=batch, evaluate_every=1))
    ends: list[float] = []
    model = NodeClassifier(method, recipe=recipe, max_epochs=epochs, features="standardised", accelerator="cpu")
    model.fit(train, validation, report=lambda row: ends.append(time.perf_counter()))
    return min(later - before for before, later in zip(ends, ends[1:], strict=False))


def main() -> None:
    """Write the graphs, train and print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", type=int, default=3000)
    parser.add_argument("--nodes", type=int, default=30, help="of each graph")
    parser.add_argument("--batch", type=int, default=32, help="graphs of an update")
    parser.add_argument("--method", default="spn")
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
    machine = {"processor": processor_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0], **provenance()}
    with tempfile.TemporaryDirectory() as folder:
        graphs = [made_graph(seed, given.nodes) for seed in range(given.graphs)]
        write_graphs(graphs, Path(folder, "graphs.parquet"))
        del graphs
        began = time.perf_counter()
        listed: Sequence[Data] = read_graphs(folder)
        middle = time.perf_counter()
        streamed: Sequence[Data] = GraphFiles(folder, scratch=folder)
        read = (middle - began, time.perf_counter() - middle)
        validation = [made_graph(given.graphs + seed, given.nodes) for seed in range(HELD_OUT)]
        work = (validation, given.method, given.batch, given.epochs)
        rounds = [(least_epoch(listed, *work), least_epoch(streamed, *work)) for _ in range(ROUNDS)]
    sizes = {name: value for name, value in vars(given).items() if name != "out"}
    store(given.out, {**sizes, "machine": machine, "seconds_read": read, "seconds_epoch": rounds})


def store(out: Path, row: dict[str, Any]) -> None:
    """Put a row into the stored ones, in place of an earlier one of the same sizes, and write the page."""
    path = out / "streaming.json"
    rows = json.loads(path.read_text()) if path.exists() else []
    rows = sorted(
        [row, *(old for old in rows if (old["graphs"], old["nodes"]) != (row["graphs"], row["nodes"]))],
        key=lambda one: one["nodes"],
    )
    write_json(path, rows)
    lines = [
        "`benchmarks/learning/streaming.py`: an SPN with GCNs of width 64, one thread; the least epoch of "
        f"{ROUNDS} trainings each. Reading makes the list of graphs, or the temporary file.",
        "",
        "| graphs | epoch in memory | streamed | ratio | ratios of rounds | read in memory | streamed | measured on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        memory, stream = (min(times) for times in zip(*one["seconds_epoch"], strict=True))
        ratios = ", ".join(f"{other / first:.2f}" for first, other in one["seconds_epoch"])
        facts = one["machine"]
        lines.append(
            f"| {one['graphs']:,} of {one['nodes']} nodes | {memory:.3f} s | {stream:.3f} s | {stream / memory:.2f} | "
            f"{ratios} | {one['seconds_read'][0]:.2f} s | {one['seconds_read'][1]:.2f} s | {facts['processor']}, "
            f"load {facts['load']:.1f}, torch {facts['torch']}, commit {facts['commit']}, {facts['date']} |"
        )
    write_text(out / "streaming.md", "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
