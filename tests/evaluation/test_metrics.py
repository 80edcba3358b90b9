import pytest
import torch
from torch_geometric.data import Data

from accord.evaluation import (
    edge_accuracy,
    graph_accuracy,
    graph_edge_accuracy,
    micro_f1,
    node_accuracy,
    node_ids,
    unseen_nodes,
)
from accord.graphs import topology

# Three graphs: nodes 0-1, nodes 2-3, and node 4, whose label is missing.
GRAPHS = topology(torch.tensor([[0, 2], [1, 3]]), 5, torch.tensor([0, 0, 1, 1, 2]))
TRUTH = torch.tensor([0, 1, 1, 0, -1])
LABELS = torch.tensor([[0, 1, 1, 1, 0], [0, 1, 1, 0, 1]])  # two replicas


def test_accuracies_by_hand():
    assert node_accuracy(LABELS, TRUTH).tolist() == [0.75, 1.0]
    assert graph_accuracy(LABELS, TRUTH, GRAPHS).tolist() == [0.5, 1.0]


def test_without_true_labels_accuracies_are_undefined():
    missing = torch.full((5,), -1)
    assert bool(node_accuracy(LABELS, missing).isnan().all())
    assert bool(graph_accuracy(LABELS, missing, GRAPHS).isnan().all())


def test_edges_count_pairs_of_states():
    tables = torch.zeros(2, 2, 2)
    tables[0, 0, 1] = 1.0  # edge 0-1: states 0 and 1, as in TRUTH
    tables[1, 0, 1] = 1.0  # edge 2-3: states 0 and 1, but TRUTH has 1 and 0
    assert float(edge_accuracy(tables, TRUTH, GRAPHS)) == 0.5
    half_known = torch.tensor([0, 1, 1, -1, -1])
    assert float(edge_accuracy(tables, half_known, GRAPHS)) == 1.0  # the second edge does not count


def test_graphs_with_every_pair_right():
    """A graph counts if it has an edge with known labels; one wrong pair makes it wrong."""
    graphs = topology(torch.tensor([[0, 0, 3], [1, 2, 4]]), 6, torch.tensor([0, 0, 0, 1, 1, 2]))
    truth = torch.tensor([0, 0, 0, 1, 1, 1])
    tables = torch.zeros(2, 3, 2, 2)
    tables[:, :2, 0, 0] = tables[:, 2, 1, 1] = 1.0
    tables[1, 1, 1, 0] = 2.0
    assert graph_edge_accuracy(tables, truth, graphs).tolist() == [1.0, 0.5]
    assert graph_edge_accuracy(tables, torch.tensor([0, 0, -1, 1, 1, 1]), graphs).tolist() == [1.0, 1.0]


def test_micro_f1_counts_state_one():
    labels, truth = torch.tensor([1, 1, 0, 0, 1]), torch.tensor([1, 0, 1, 0, -1])
    assert float(micro_f1(labels, truth)) == pytest.approx(2 * 1 / (2 + 2))


def test_unseen_nodes_occur_in_no_training_graph():
    train = [Data(node_id=torch.tensor([3, 1])), Data(node_id=torch.tensor([1, 7]))]
    test = [Data(node_id=torch.tensor([1, 2])), Data(node_id=torch.tensor([7, 9]))]
    assert node_ids(test).tolist() == [1, 2, 7, 9]
    assert unseen_nodes(train, test).tolist() == [False, True, False, True]
    assert unseen_nodes([*train, Data()], test) is None and unseen_nodes(train, [Data()]) is None
    assert node_ids([]) is None
