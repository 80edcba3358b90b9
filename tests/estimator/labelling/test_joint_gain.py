"""`NodeClassifier.joint_gain`: how far edges can go on some graphs."""

import pytest
import torch
from support.made_graphs import made_trees

from accord import NodeClassifier

TRAIN, VAL, TEST = (made_trees(20, seed) for seed in (0, 1, 2))


@pytest.fixture(scope="module")
def model():
    return NodeClassifier(encoder="mlp", max_epochs=10, accelerator="cpu").fit(TRAIN, VAL)


def test_each_part_is_compared_with_the_truth(model):
    gain = model.joint_gain(TEST)
    pairs = [graph.y[graph.edge_index] for graph in TEST]
    assert gain.equal == pytest.approx(float(torch.cat([(a == b).double() for a, b in pairs]).mean()))
    assert set(gain.known) == {"gnn", "edge", "spn"}
    assert all(value is None or 0 <= value <= 1 for value in gain.known.values())
    alone = float((model.answers(TEST).labels["gnn"][0] == torch.cat([graph.y for graph in TEST])).double().mean())
    assert gain.node_accuracy >= alone  # perfect knowledge of a tree's edges does no harm


def test_methods_without_an_edge_network_have_none():
    alone = NodeClassifier(method="gnn", encoder="mlp", max_epochs=2, accelerator="cpu").fit(TRAIN, VAL)
    assert alone.joint_gain(TEST) is None
