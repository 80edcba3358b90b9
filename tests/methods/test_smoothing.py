"""Smoothing: PyG's label propagation on predictions, chosen on validation data."""

import torch
from support.made_graphs import made_trees
from torch.testing import assert_close

import accord
from accord.encoders import MLP
from accord.graphs import GraphBatch
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.methods import GNN, GNNRecipe, Shape, SmoothedGNN
from accord.methods._smoothing import CANDIDATES, smooth

TRAIN, VAL, TEST = made_trees(60, 0, states=3), made_trees(30, 1, states=3), made_trees(60, 2, states=3)
SHAPE = Shape(3, 3)
RECIPE = GNNRecipe(
    encoder=MLP(hidden=8),
    node=PartOptions(learning_rate=2e-2),
    training=TrainingOptions(max_epochs=20, accelerator="cpu"),
)


def test_a_round_averages_with_the_normalised_neighbours():
    batch = GraphBatch.collate(VAL[:4])
    values = torch.rand(2, len(batch.y), 3)
    adjacency = torch.zeros(len(batch.y), len(batch.y))
    source, target = batch.topology.edge_index
    adjacency[source, target] = adjacency[target, source] = 1
    root = adjacency.sum(1).clamp_min(1).rsqrt()
    expected = 0.3 * (root[:, None] * adjacency * root) @ values + 0.7 * values
    assert_close(smooth(values, batch, 1, 0.3), expected.clamp(0, 1))
    assert smooth(values, batch, 0, 0.0) is values


def test_each_replica_chooses_its_own_and_never_loses_on_validation():
    alone = GNN(RECIPE).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1, 2)))
    model = SmoothedGNN(RECIPE).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1, 2)))
    for graphs, may_lose in ((VAL, False), (TEST, True)):
        batch = GraphBatch.collate(graphs)
        gain = (model.labels(batch) == batch.y).double().mean(-1) - (alone.labels(batch) == batch.y).double().mean(-1)
        assert may_lose or bool((gain >= 0).all())
        assert gain.mean() > 0  # labels tend to agree along edges here
    batch = GraphBatch.collate(TEST)
    assert set(model.smoothing) <= set(CANDIDATES)
    for replica, smoothing in enumerate(model.smoothing):
        own = smooth(alone.node_logits(batch).softmax(-1)[replica : replica + 1], batch, *smoothing)
        assert_close(model.log_probabilities(batch).exp()[replica], own[0])


def test_the_classifier_trains_saves_and_loads_it(tmp_path):
    model = accord.NodeClassifier("smooth", recipe=RECIPE, accelerator="cpu").fit(TRAIN, VAL)
    model.save(tmp_path)
    again = accord.NodeClassifier.load(tmp_path)
    for graph in TEST[:5]:
        assert torch.equal(again.predict(graph), model.predict(graph))
        assert_close(again.predict_proba(graph), model.predict_proba(graph))
