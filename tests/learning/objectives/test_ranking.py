"""Ranking: the metric decides; node accuracy breaks ties."""

import torch

from accord.graphs import Topology
from accord.learning.objectives import rank

# Two graphs of two nodes.
PAIRS = Topology(4, torch.tensor([[0, 2], [1, 3]]), torch.arange(2), torch.tensor([0, 0, 1, 1]), 2)
TRUTH = torch.tensor([[1, 1, 1, 1]])


def test_one_more_graph_outweighs_any_number_of_nodes():
    one_graph, one_node_each = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 1]])
    scores = rank(torch.stack([one_graph, one_node_each]), TRUTH, PAIRS, "graph")
    assert scores[0] > scores[1]
    assert rank(one_graph[None], TRUTH, PAIRS, "node") == rank(one_node_each[None], TRUTH, PAIRS, "node") == 0.5


def test_node_accuracy_ranks_models_that_get_no_graph_right():
    scores = rank(torch.tensor([[0, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]]), TRUTH, PAIRS, "graph")
    assert scores.argsort().tolist() == [0, 1, 2]
    assert scores.max() < 1e-6


def test_missing_labels_do_not_count():
    truth = torch.tensor([[1, -1, -1, -1]])
    assert rank(torch.tensor([[1, 0, 0, 0]]), truth, PAIRS, "graph").round(decimals=5) == 1
