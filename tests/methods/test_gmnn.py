"""GMNN: a label network that never reads a node's own label, trained in turn with the inference network."""

from dataclasses import replace

import pytest
import torch
from support.made_graphs import made_trees
from support.made_recipes import recipe_for
from torch.testing import assert_close

import accord
from accord.encoders import GCN, MLP, Noise
from accord.errors import OptionError
from accord.graphs import GraphBatch
from accord.learning import PartOptions, Replicas, TrainingOptions, TrainingRun
from accord.learning.objectives._gmnn import InferenceObjective, known_labels, mean_of_neighbours
from accord.methods import GMNN, GNN, GMNNRecipe, Shape

TRAIN, VAL, TEST = made_trees(60, 0, states=3), made_trees(30, 1, states=3), made_trees(60, 2, states=3)
SHAPE = Shape(3, 3)
RECIPE = GMNNRecipe(
    encoder=MLP(hidden=8),
    label_encoder=MLP(hidden=8),
    label_channels=8,
    node=PartOptions(learning_rate=2e-2),
    label=PartOptions(learning_rate=2e-2),
    training=TrainingOptions(max_epochs=20, accelerator="cpu"),
)


def accuracy(model, graphs):
    batch = GraphBatch.collate(graphs)
    return (model.labels(batch) == batch.y).double().mean(-1)


def test_the_label_network_does_not_read_a_nodes_own_label():
    batch = GraphBatch.collate(TRAIN[:5])
    model = GMNN(RECIPE).build(SHAPE, Replicas((0,)))
    labels = torch.rand(1, len(batch.y), 3, requires_grad=True)
    for node in range(len(batch.y)):
        (gradient,) = torch.autograd.grad(model.parts["label"](batch, labels)[0, node].sum(), labels)
        source, target = batch.topology.edge_index
        neighbours = torch.cat([source[target == node], target[source == node]])
        touched = gradient[0].abs().sum(-1).nonzero().flatten()
        assert node not in touched.tolist()
        assert set(touched.tolist()) <= set(neighbours.tolist())


def test_neighbours_are_averaged():
    batch = GraphBatch.collate(TRAIN[:8])
    values = torch.randn(2, len(batch.y), 3)
    adjacency = torch.zeros(len(batch.y), len(batch.y))
    source, target = batch.topology.edge_index
    adjacency[source, target] = adjacency[target, source] = 1
    mean = adjacency / adjacency.sum(1, keepdim=True).clamp_min(1)
    assert_close(mean_of_neighbours(values, batch.topology), mean @ values)


def test_missing_labels_are_filled_in_by_the_inference_network():
    batch = GraphBatch.collate(TRAIN[:5])
    model = GMNN(RECIPE).build(SHAPE, Replicas((0,)))
    targets = batch.y.clone()
    targets[::2] = -1
    known = known_labels(model.parts["node"], batch, targets[None])
    assert_close(known[:, ::2], model.node_logits(batch).softmax(-1)[:, ::2])
    assert_close(known[0, 1::2], torch.nn.functional.one_hot(batch.y[1::2], 3).float())


def test_the_inference_network_learns_from_the_label_network_too():
    """If the label network is certain of one state, the inference network's loss falls as it agrees."""
    batch = GraphBatch.collate(TRAIN[:5])
    model = GMNN(RECIPE).build(SHAPE, Replicas((0,)))
    label = model.parts["label"]
    objective = InferenceObjective(model.parts["node"], label, PartOptions(), "node")
    losses = []
    for state in range(3):
        with torch.no_grad():
            label.head.weight.zero_()
            label.head.bias.copy_(50.0 * torch.nn.functional.one_hot(torch.tensor([state]), 3))
        losses.append(objective.losses(batch, batch.y[None], Noise(torch.tensor([0]), 0))["node"])
    logs = model.node_logits(batch).log_softmax(-1).mean(1)[0]
    assert_close(torch.cat(losses) - losses[0], -(logs - logs[0]) / 2, rtol=1e-4, atol=1e-5)


def test_labels_of_neighbours_help_and_rounds_alternate():
    alone = GNN(recipe_for(GNN, vars(RECIPE))).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1)))
    both = GMNN(RECIPE).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0, 1)))
    assert bool((accuracy(both, VAL) >= accuracy(alone, VAL)).all())  # no stage ends worse than it starts
    assert accuracy(both, TEST).mean() > accuracy(alone, TEST).mean()
    assert [row["epoch"] for row in both.history] == list(range(0, 105, 5))
    kinds = ["label" if "label_loss" in row else "node" for row in both.history[1:]]
    assert kinds == ["node"] * 4 + (["label"] * 4 + ["node"] * 4) * 2


def test_without_rounds_the_model_is_the_inference_network():
    alone = GNN(recipe_for(GNN, vars(RECIPE))).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,)))
    both = GMNN(replace(RECIPE, rounds=0)).fit(TrainingRun(TRAIN, VAL), SHAPE, Replicas((0,)))
    batch = GraphBatch.collate(TEST)
    assert_close(both.node_logits(batch), alone.node_logits(batch))


def test_rounds_are_whole_numbers():
    for rounds in (-1, 1.5, True):
        with pytest.raises(OptionError, match="GMNNRecipe: rounds"):
            replace(RECIPE, rounds=rounds)


def test_the_classifier_trains_saves_and_loads_it(tmp_path):
    model = accord.NodeClassifier("gmnn", GCN(hidden=8), max_epochs=5, accelerator="cpu").fit(TRAIN, VAL)
    model.save(tmp_path)
    again = accord.NodeClassifier.load(tmp_path)
    for graph in TEST[:5]:
        assert torch.equal(again.predict(graph), model.predict(graph))
        assert_close(model.predict_proba(graph).sum(-1), torch.ones(graph.num_nodes))
