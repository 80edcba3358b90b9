"""Time of training epochs by one process, or by several that share every batch.

    python benchmarks/distributed/training.py results/distributed

Writes training.json and training.md: seconds an epoch, the least of several epochs, since other work on the machine
only adds to it. One process with one and with two threads and two processes of one thread take turns, in rounds; a
round during which other programs took more than 5 % of the machine is repeated.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import torch
from load import OTHERS, TRIES, machine_seconds
from torch_geometric.data import Data

from accord._files import write_json, write_text
from accord._launched import launched_devices, launched_rank
from accord.bench.inference._machine import processor_name
from accord.encoders import GCN
from accord.experiments._provenance import provenance
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.methods import GNN, GNNRecipe, Shape

FEATURES, STATES, HELD_OUT, ROUNDS = 32, 5, 8, 3
WAYS = {  # threads of each process, and how Python starts
    "one process, one thread": (1, []),
    "one process, two threads": (2, []),
    "two processes, one thread each": (1, ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]),
}


def made_graph(seed: int, nodes: int) -> Data:
    """Random edges, eight to a node, and labels that the features show."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, STATES, (nodes,), generator=generator)
    x = torch.randn(nodes, FEATURES, generator=generator)
    x[:, :STATES] += torch.nn.functional.one_hot(y, STATES)
    return Data(x=x, edge_index=torch.randint(0, nodes, (2, 8 * nodes), generator=generator), y=y)


def main() -> None:
    """Train and print the time of an epoch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", help="folder for the figures; none in the processes measured")
    parser.add_argument("--graphs", type=int, default=128)
    parser.add_argument("--nodes", type=int, default=1000, help="of each graph")
    parser.add_argument("--batch", type=int, default=32, help="graphs of an update")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=6)
    given = parser.parse_args()
    if given.out is not None:
        write(given.out, given)
        return
    graphs = [made_graph(seed, given.nodes) for seed in range(given.graphs + HELD_OUT)]
    devices, nodes = launched_devices() or (1, 1)
    training = TrainingOptions(
        max_epochs=given.epochs,
        batch_graphs=given.batch,
        evaluate_every=1,
        accelerator="cpu",
        devices=devices,
        nodes=nodes,
    )
    recipe = GNNRecipe(encoder=GCN(hidden=given.hidden, layers=2), node=PartOptions(), training=training)
    ends: list[float] = []
    run = TrainingRun(graphs[HELD_OUT:], graphs[:HELD_OUT], report=lambda row: ends.append(time.perf_counter()))
    GNN(recipe, "node").fit(run, Shape(FEATURES, STATES), Replicas((0,)))
    if launched_rank() == 0:
        least = min(later - before for before, later in zip(ends, ends[1:], strict=False))
        print(least)


def write(out: Path, given: argparse.Namespace) -> None:
    """Measure all ways in turn, and store what they took."""
    facts = {"processor": processor_name(), "cores": os.cpu_count(), "load": os.getloadavg()[0], **provenance()}
    sizes = {name: value for name, value in vars(given).items() if name != "out"}
    asked = [f"--{name}={value}" for name, value in sizes.items()]
    rounds: list[dict[str, float]] = []
    for _ in range(TRIES * ROUNDS):
        found, before, own = {}, machine_seconds(), sum(os.times()[:4])
        for name, (threads, start) in WAYS.items():
            surroundings = {**os.environ, "OMP_NUM_THREADS": str(threads)}
            command = [sys.executable, *start, str(Path(__file__).resolve()), *asked]
            done = subprocess.run(command, env=surroundings, check=True, stdout=subprocess.PIPE, text=True)
            found[name] = float(done.stdout.splitlines()[-1])
        busy, whole = (after - one for after, one in zip(machine_seconds(), before, strict=True))
        others = (busy - (sum(os.times()[:4]) - own)) / whole
        print(found, f"others {others:.1%}", flush=True)
        if others <= OTHERS:
            rounds.append(found | {"others": others})
        if len(rounds) == ROUNDS:
            break
    else:
        raise RuntimeError(f"other programs left {len(rounds)} rounds undisturbed.")
    seconds = {name: [one[name] for one in rounds] for name in WAYS}
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "training.json", {"machine": facts, **sizes, "rounds": rounds})
    lines = [
        f"`python benchmarks/distributed/training.py results/distributed`: a GNN (GCN of width {given.hidden}) on "
        f"{given.graphs} graphs of {given.nodes} nodes in batches of {given.batch}, an epoch with its evaluation. "
        f"{facts['processor']}, {facts['cores']} cores, load {facts['load']:.1f} before, torch {facts['torch']}, "
        f"commit {facts['commit']}, {facts['date']}.",
        "",
        "| | seconds of an epoch |",
        "|---|---|",
        *(f"| {name} | {', '.join(f'{one:.3f}' for one in taken)} |" for name, taken in seconds.items()),
    ]
    write_text(out / "training.md", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
