"""Weights of training labels: their mean is 1, balanced ones make all states count the same, and training uses them."""

import pytest
import torch
from learning.training_cases import RECIPE, TRAIN, VAL, made_graphs, with_training
from torch.testing import assert_close
from torch_geometric.data import Data

from accord.errors import InputError
from accord.graphs import GraphBatch
from accord.learning import Replicas, TrainingRun
from accord.learning.training import StateWeights
from accord.methods import GNN, GNNRecipe, Shape, StructuredProxyNetwork

GRAPHS = made_graphs(30, 3, missing=0.3)


def totals(weights, graphs):
    """Total weight of each state over the labels of graphs, and the mean weight of nodes and of edges."""
    batch = GraphBatch.collate(graphs)
    y = batch.y if batch.y.dim() == 2 else batch.y[:, None]
    states, nodes, edges = [], [], []
    for task, labels in enumerate(y.t()):
        known = labels[labels >= 0]
        states.append(torch.bincount(known, weights.node[task][known], weights.node.shape[1]))
        nodes.append(weights.node[task][known].mean())
        source, target = labels[batch.topology.edge_index]
        both = (source >= 0) & (target >= 0)
        edges.append(weights.edge[task][source[both], target[both]].mean())
    return states, nodes, edges


def several(graph):
    return Data(x=graph.x, edge_index=graph.edge_index, y=torch.stack([graph.y, (graph.y > 0).long()], 1))


def test_balanced_states_weigh_the_same_in_every_task():
    graphs = [several(graph) for graph in made_graphs(30, 4)]
    weights = StateWeights.balanced(graphs, 3)
    states, nodes, edges = totals(weights, graphs)
    assert_close(states[0], states[0].mean().expand(3))
    assert_close(states[1][:2], states[1][:2].mean().expand(2))
    assert_close(torch.stack([*nodes, *edges]), torch.ones(4))


def test_given_weights_keep_their_ratios():
    weights = StateWeights.by_state(torch.tensor([1.0, 4.0, 16.0]), GRAPHS)
    _, nodes, edges = totals(weights, GRAPHS)
    assert_close(weights.node / weights.node[:, :1], torch.tensor([[1.0, 4.0, 16.0]]))
    assert_close(weights.edge / weights.edge[:, :1, :1], torch.tensor([[[1.0, 2, 4], [2, 4, 8], [4, 8, 16]]]))
    assert_close(torch.stack([*nodes, *edges]), torch.ones(2))


def test_weights_leave_odds_ratios_of_pairs_unchanged():
    edge = StateWeights.by_state(torch.tensor([1.0, 7.0, 0.2]), GRAPHS).edge[0]
    assert_close(edge[0, 0] * edge[1, 1], edge[0, 1] * edge[1, 0])
    assert_close(edge[0, 1] * edge[1, 2], edge[0, 2] * edge[1, 1])


def test_each_replica_has_the_weights_of_its_task():
    weights = StateWeights(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.arange(8.0).view(2, 2, 2))
    some = weights.of_replicas(Replicas((5, 6), 2).subset([1, 2]), torch.device("cpu"))
    assert torch.equal(some.node, weights.node[[1, 0]]) and torch.equal(some.edge, weights.edge[[1, 0]])


def predictions(method, run, seeds=(0,)):
    model = method.fit(run, Shape(3, 3), Replicas(seeds))
    return model.node_logits(GraphBatch.collate(VAL)).softmax(-1)


def test_a_weighted_state_is_predicted_more_often():
    method = GNN(GNNRecipe(encoder=RECIPE.encoder, node=RECIPE.node, training=RECIPE.training))
    heavy = StateWeights.by_state(torch.tensor([1.0, 20.0, 1.0]), TRAIN)
    plain, weighted = (predictions(method, TrainingRun(TRAIN, VAL, weights=w)) for w in (None, heavy))
    assert weighted[..., 1].mean() > plain[..., 1].mean() + 0.2


def test_equal_weights_change_nothing_and_replicas_do_not_depend_on_each_other():
    method = StructuredProxyNetwork(with_training(max_epochs=6, batch_graphs=8))
    equal = StateWeights.by_state(torch.full((3,), 5.0), TRAIN)
    alone = predictions(method, TrainingRun(TRAIN, VAL, weights=equal), (4,))
    assert_close(alone, predictions(method, TrainingRun(TRAIN, VAL), (4,)))
    balanced = StateWeights.balanced(TRAIN, 3)
    both = predictions(method, TrainingRun(TRAIN, VAL, weights=balanced), (3, 4))
    assert_close(both[1:], predictions(method, TrainingRun(TRAIN, VAL, weights=balanced), (4,)), atol=1e-5, rtol=1e-5)


def test_a_checkpoint_is_not_resumed_with_other_weights_or_another_start(tmp_path):
    method = GNN(GNNRecipe(encoder=RECIPE.encoder, node=RECIPE.node, training=with_training(max_epochs=2).training))
    shape, replicas = Shape(3, 3), Replicas((0,))
    model = method.fit(TrainingRun(TRAIN, VAL, tmp_path), shape, replicas)
    for changes in ({"weights": StateWeights.balanced(TRAIN, 3)}, {"start": model.tensors()}):
        with pytest.raises(InputError, match="other seeds, settings"):
            method.fit(TrainingRun(TRAIN, VAL, tmp_path, **changes), shape, replicas)
