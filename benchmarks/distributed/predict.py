"""Graphs a second that `accord predict --engine` labels: in this process, and by one and two Ray workers.

    python benchmarks/distributed/predict.py results/distributed --graphs 60000

Writes predict.json and predict.md. Each engine labels the same Parquet file into an empty folder; rounds of all engines
alternate, and the least time of each counts, since other work on the machine only adds to it. Cores are divided among
the workers. The start of the cluster is not counted, that of the workers (loading the model) is. The labels of all are
compared.
"""

import argparse
import json
import os
import tempfile
import time
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as parquet
import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord._files import write_json, write_text
from accord.app.commands.predict import Wanted, predict_blocks
from accord.app.runs import Run, open_model
from accord.bench.inference._machine import processor_name
from accord.datasets import write_graphs
from accord.distributed.engines import Engine, open_engine
from accord.experiments._provenance import provenance

FEATURES, STATES, TRAINING, BLOCK_GRAPHS = 16, 3, 60, 500
ENGINES = {"this process": 0, "1 worker": 1, "2 workers": 2}  # workers of Ray; 0 for none


def made_graph(seed: int, nodes: int) -> Data:
    """A ring with chords whose labels come in runs; features show a label now and then wrongly."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, STATES, (nodes // 5 + 1,), generator=generator).repeat_interleave(5)[:nodes]
    x = torch.randn(nodes, FEATURES, generator=generator)
    x[:, :STATES] += torch.nn.functional.one_hot(y, STATES)
    ring = torch.arange(nodes)
    edges = torch.cat([torch.stack([ring, ring.roll(-1)]), torch.stack([ring, ring.roll(-2)])], dim=1)
    return Data(x=x, edge_index=edges, y=y, graph_name=f"g{seed:06d}")


def open_workers(workers: int) -> AbstractContextManager[Engine]:
    """Ray with so many workers, or this process."""
    return open_engine("ray", workers) if workers else open_engine("local")


def labels(out: Path) -> list[str]:
    """The labels of a folder, in order."""
    files = sorted(out.glob("*.parquet"))
    return [str(label) for file in files for label in parquet.read_table(file, columns=["label"])["label"].to_pylist()]


def measure(model: Run, source: Path, folder: Path, rounds: int) -> dict[str, list[float]]:
    """The seconds of each engine in each round."""
    seconds: dict[str, list[float]] = {name: [] for name in ENGINES}
    wanted: list[str] | None = None
    for number in range(rounds):
        for name, workers in ENGINES.items():
            out = folder / f"{name} {number}"
            with open_workers(workers) as engine:
                begun = time.perf_counter()
                predict_blocks(model, source, out, engine, Wanted(), BLOCK_GRAPHS)
                seconds[name].append(time.perf_counter() - begun)
            found = labels(out)
            wanted = wanted or found
            if found != wanted:
                raise RuntimeError(f"{name} gives other labels than {next(iter(ENGINES))}.")
    return seconds


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=30, help="of each graph")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    machine = {"processor": processor_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0], **provenance()}
    machine["ray"] = version("ray")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        NodeClassifier().fit([made_graph(seed, given.nodes) for seed in range(TRAINING)]).save(folder / "model")
        graphs = [made_graph(TRAINING + number, given.nodes) for number in range(given.graphs)]
        for graph in graphs:
            del graph.y
        write_graphs(graphs, folder / "graphs.parquet")
        seconds = measure(open_model(folder / "model"), folder / "graphs.parquet", folder / "labels", given.rounds)
    rates = {name: given.graphs / min(taken) for name, taken in seconds.items()}
    facts = {"graphs": given.graphs, "nodes": given.nodes, "machine": machine, "seconds": seconds}
    given.out.mkdir(parents=True, exist_ok=True)
    write_json(given.out / "predict.json", facts | {"graphs_a_second": rates})
    first = rates["this process"]
    rows = [f"| {name} | {rate:.0f} | {rate / first:.2f} |" for name, rate in rates.items()]
    lines = [
        f"`python benchmarks/distributed/predict.py results/distributed --graphs {given.graphs}`: so many graphs of "
        f"{given.nodes} nodes, labels compared and equal. {machine['processor']}, {machine['cores']} cores, load "
        f"{machine['load']:.1f} before, torch {machine['torch']}, Ray {machine['ray']}, commit {machine['commit']}, "
        f"{machine['date']}. The least time of {given.rounds} rounds.",
        "",
        "| labelled by | graphs a second | to this process |",
        "|---|---|---|",
        *rows,
    ]
    write_text(given.out / "predict.md", "\n".join(lines) + "\n")
    print(json.dumps(rates, indent=2))


if __name__ == "__main__":
    main()
