"""Graphs, a recipe and helpers that the tests of training share."""

from dataclasses import replace

import torch
from torch.testing import assert_close
from torch_geometric.data import Data

from accord.encoders import GCN, MLP, LinearScorer
from accord.learning import CombinationGrid, PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.training import Trainer
from accord.methods import Shape, SPNRecipe, StructuredProxyNetwork


def made_graphs(count, seed, states=3, missing=0.0):
    """Rings whose labels tend to agree along edges; features are noisy labels."""
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for _ in range(count):
        size = int(torch.randint(4, 8, (), generator=generator))
        ring = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])
        first = torch.randint(0, states, (), generator=generator)
        flips = torch.rand(size, generator=generator) < 0.2
        y = (first + flips.long().cumsum(0)) % states
        x = torch.nn.functional.one_hot(y, states) + 1.2 * torch.randn(size, states, generator=generator)
        y = y.masked_fill(torch.rand(size, generator=generator) < missing, -1)
        graphs.append(Data(x=x, edge_index=torch.cat([ring, ring.flip(0)], 1), y=y))
    return graphs


TRAIN, VAL, TEST = made_graphs(40, 0), made_graphs(20, 1), made_graphs(60, 2)
SHAPE = Shape(3, 3)
RECIPE = SPNRecipe(
    encoder=MLP(hidden=8, layers=2, dropout=0.2),
    edge_encoder=GCN(hidden=8, layers=2, dropout=0.2),
    edge_channels=8,
    scorer=LinearScorer(dropout=0.2),
    node=PartOptions(learning_rate=2e-2),
    edge=PartOptions(learning_rate=2e-2),
    training=TrainingOptions(max_epochs=30, accelerator="cpu"),
    grid=CombinationGrid(sharpness=(1.0, 0.5, 0.0), power=(1.0, 0.5), node_weight=(1.0,)),
)
SEEDS = (5, 3, 8, 11, 2)
LEAVING = replace(RECIPE, training=replace(RECIPE.training, patience=2, max_epochs=120, evaluate_every=2))


def fit(recipe=RECIPE, seeds=(0,), train=TRAIN, val=VAL, folder=None, method=StructuredProxyNetwork):
    return method(recipe, "graph").fit(TrainingRun(train, val, folder), SHAPE, Replicas(seeds))


def with_training(**changes):
    return replace(RECIPE, training=replace(RECIPE.training, **changes))


def same(left, right, **tolerance):
    assert left.keys() == right.keys()
    for name in left:
        assert_close(left[name], right[name], equal_nan=True, **tolerance)


def presence(monkeypatch):
    """How many replicas were in the batch, at each evaluation."""
    counts, evaluate = [], Trainer._evaluate
    monkeypatch.setattr(Trainer, "_evaluate", lambda self, *a: counts.append(len(self.present)) or evaluate(self, *a))
    return counts
