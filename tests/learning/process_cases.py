"""One small training of every method, run by one process or shared by several; and what starts the several.

As a script, it trains the cases that are named: `python process_cases.py FOLDER DEVICES EPOCHS FILES NAME...`, one
process of several, each of which writes what it ended with. FILES are training graphs that are streamed; "" for none.
"""

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import torch
from torch_geometric.data import Data

from accord._launched import free_port
from accord.datasets import GraphFiles
from accord.encoders import GAT, GCN, GCNII, MLP, AgreementScorer, BilinearScorer, LinearScorer
from accord.encoders.scorers.triangles import AgreementTriangles
from accord.errors import UnusedLabelsWarning
from accord.learning import CombinationGrid, PartOptions, RefinementOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.training import StateWeights, write_checkpoint
from accord.methods import (
    CRF,
    GMNN,
    GNN,
    CRFRecipe,
    GMNNRecipe,
    GNNRecipe,
    Shape,
    SmoothedGNN,
    SPNRecipe,
    StructuredProxyNetwork,
    TriangleRecipe,
)

SHAPE, EPOCHS = Shape(5, 3), 7  # 11 graphs in batches of 4, 4 and 3: 21 updates, and one process of four has no graph
TRAINING = TrainingOptions(
    max_epochs=EPOCHS, batch_graphs=4, evaluate_every=EPOCHS, checkpoint_every=1, accelerator="cpu", precision="64-true"
)
PART = PartOptions(learning_rate=1e-2, weight_decay=1e-3, label_smoothing=0.1)
COMMON = {"encoder": GCN(hidden=6, layers=2, dropout=0.3, input_dropout=0.2), "node": PART, "training": TRAINING}
PAIR = COMMON | {
    "edge_encoder": MLP(hidden=6, layers=2, dropout=0.3),
    "edge_channels": 6,
    "scorer": LinearScorer(dropout=0.2),
    "edge": PART,
}
SPN = SPNRecipe(**PAIR, grid=CombinationGrid(sharpness=(1.0, 0.5), power=(1.0,), node_weight=(1.0,)))
WALK = RefinementOptions(learning_rate=1e-2, max_epochs=EPOCHS)
ATTENTION = GAT(hidden=4, heads=(2, 2), dropout=0.2, attention_dropout=0.3)
CASES = {
    "gnn": (GNN, GNNRecipe(**COMMON | {"encoder": ATTENTION})),
    "smooth": (SmoothedGNN, GNNRecipe(**COMMON)),
    "spn": (StructuredProxyNetwork, SPN),
    "consistency": (StructuredProxyNetwork, replace(SPN, consistency=0.7, scorer=LinearScorer(hidden=5, dropout=0.3))),
    "shared": (StructuredProxyNetwork, replace(SPN, shared=True, scorer=AgreementScorer(hidden=5, dropout=0.3))),
    "linear crf": (CRF, CRFRecipe(**PAIR | {"encoder": MLP(hidden=6, layers=1, input_dropout=0.2)})),
    "gnn crf": (CRF, CRFRecipe(**PAIR | {"scorer": BilinearScorer(dropout=0.2)}, objective="pseudolikelihood")),
    "gmnn": (GMNN, GMNNRecipe(**COMMON, label_encoder=GCNII(hidden=6, layers=2, dropout=0.2), label=PART, rounds=1)),
    "refined": (StructuredProxyNetwork, replace(SPN, refinement=WALK)),
    "order 3": (
        StructuredProxyNetwork,
        replace(
            SPN,
            refinement=WALK,
            triangles=TriangleRecipe(channels=6, scorer=AgreementTriangles(dropout=0.3)),
        ),
    ),
}
WEIGHTED = ("gnn", "smooth", "spn", "consistency", "shared", "gmnn")


def made_graphs(count, seed):
    """Rings with chords, which make triangles, of very different sizes; a third of the labels is missing."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for number in range(count):
        size = 4 + 3 * int(torch.randint(0, 5, (), generator=generator))
        start = torch.arange(size)
        ring = torch.stack([start, (start + 1) % size])
        chords = torch.stack([start, (start + 2) % size])[:, :: 1 + number % 3]
        y = torch.randint(0, 3, (size,), generator=generator)
        x = torch.randn(size, 5, generator=generator)
        x[:, :3] += torch.nn.functional.one_hot(y, 3)
        lost = torch.rand(size, generator=generator) < (0.9 if number == 2 else 0.3 * (number % 2))
        graphs.append(Data(x=x, edge_index=torch.cat([ring, chords], 1), y=y.masked_fill(lost, -1)))
    return graphs


TRAIN, VAL = made_graphs(11, 0), made_graphs(4, 1)


def train(name, folder, devices=1, epochs=EPOCHS, graphs=TRAIN):
    """The model of a case, trained by one process, or by this one together with others."""
    method, recipe = CASES[name]
    recipe = replace(recipe, training=replace(recipe.training, devices=devices, max_epochs=epochs))
    weights = StateWeights.balanced(TRAIN, 3) if name in WEIGHTED else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedLabelsWarning)
        run = TrainingRun(graphs, VAL, Path(folder, name), weights=weights)
        return method(recipe, "node").fit(run, SHAPE, Replicas((3, 5)))


def start_processes(arguments, count, **changes):
    """So many processes of one job, as torchrun would start them."""
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    started = []
    for rank in range(count):
        own = {**shared, "RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "OMP_NUM_THREADS": 1}
        environment = {**os.environ, **{key: str(value) for key, value in own.items()}, **changes}
        started.append(
            subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True, env=environment)
        )
    return started


def run_processes(arguments, count):
    """Wait for so many processes to end, without an error."""
    started = start_processes(arguments, count)
    try:
        for process in started:
            _, errors = process.communicate(timeout=240)
            assert process.returncode == 0, errors[-3000:]
    finally:
        for process in started:
            process.kill()


def train_together(names, folder, count, epochs=EPOCHS, files=""):
    """Train cases by so many processes; each ends with files FOLDER/RANK.NAME."""
    run_processes([__file__, str(folder), str(count), str(epochs), str(files), *names], count)


if __name__ == "__main__":
    folder, devices, epochs, files, names = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:]
    graphs = GraphFiles(files, scratch=folder) if files else TRAIN
    for name in names:
        model = train(name, folder, devices, epochs, graphs)
        ended = {"history": model.history, "choice": model.choice(), "world": os.environ["WORLD_SIZE"]}
        write_checkpoint(Path(folder, f"{os.environ['RANK']}.{name}"), model.tensors(), ended)
