"""Time of training epochs on graphs in memory and on the same graphs streamed from disk, in one run.

    OMP_NUM_THREADS=1 python benchmarks/streaming.py --graphs 4000 --nodes 30
    OMP_NUM_THREADS=1 python benchmarks/streaming.py --graphs 400 --nodes 300

Both are trained in turn, several times. Prints the least seconds of an epoch of each, their ratio, and how long the
files took to be read.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from accord import NodeClassifier
from accord.datasets import GraphFiles, read_graphs, write_graphs
from accord.encoders import GCN
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
    parser.add_argument("--graphs", type=int, default=4000)
    parser.add_argument("--nodes", type=int, default=30, help="of each graph")
    parser.add_argument("--batch", type=int, default=32, help="graphs of an update")
    parser.add_argument("--method", default="spn")
    parser.add_argument("--epochs", type=int, default=3)
    given = parser.parse_args()
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
    memory, stream = (min(times) for times in zip(*rounds, strict=True))
    print(f"{given.graphs} graphs of {given.nodes} nodes, batches of {given.batch}, {given.method}:")
    print(f"read: {read[0]:.2f} s in memory, {read[1]:.2f} s streamed")
    print(f"epoch: {memory:.3f} s in memory, {stream:.3f} s streamed, ratio {stream / memory:.2f}")
    print("ratios of the rounds:", ", ".join(f"{other / one:.2f}" for one, other in rounds))


if __name__ == "__main__":
    main()
