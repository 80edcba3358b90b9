"""Time of training epochs by one process, or by several that share every batch.

    OMP_NUM_THREADS=2 python benchmarks/training_on_processes.py
    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 benchmarks/training_on_processes.py

Prints seconds an epoch, the least of several epochs: other work on the machine only adds to it.
"""

import argparse
import time

import torch
from torch_geometric.data import Data

from accord._launched import launched_devices, launched_rank
from accord.encoders import GCN
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.methods import GNN, GNNRecipe, Shape

FEATURES, STATES, HELD_OUT = 32, 5, 8


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
    parser.add_argument("--graphs", type=int, default=128)
    parser.add_argument("--nodes", type=int, default=1000, help="of each graph")
    parser.add_argument("--batch", type=int, default=32, help="graphs of an update")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=6)
    given = parser.parse_args()
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
        print(f"{devices * nodes} processes of {torch.get_num_threads()} threads: {least:.3f} s an epoch")


if __name__ == "__main__":
    main()
