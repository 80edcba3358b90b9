"""What joint labelling can gain."""

import pytest
import torch

from accord.evaluation import joint_gain
from accord.graphs import topology


def chain(length):
    return topology(torch.stack([torch.arange(length - 1), torch.arange(1, length)]), length)


def test_perfect_knowledge_of_agreement_corrects_weak_evidence():
    truth = torch.tensor([[0, 0, 1, 1, 1]])
    probabilities = torch.tensor([[[0.9, 0.1], [0.4, 0.6], [0.4, 0.6], [0.6, 0.4], [0.3, 0.7]]])  # 1 and 3 are wrong
    exact = (truth[:, :-1] == truth[:, 1:]).double()
    gain = joint_gain(probabilities.log(), {"knows": exact, "guesses": torch.full((1, 4), 0.5)}, truth, chain(5))
    assert gain.equal == pytest.approx(0.75)
    assert gain.known == {"knows": pytest.approx(1.0), "guesses": pytest.approx(0.5)}
    assert (gain.node_accuracy, gain.graph_accuracy) == (1.0, 1.0)


def test_edges_without_labels_say_nothing():
    truth = torch.tensor([[0, -1, 1]])
    probabilities = torch.tensor([[[0.6, 0.4], [0.5, 0.5], [0.6, 0.4]]])
    gain = joint_gain(probabilities.log(), {"edge": torch.rand(1, 2)}, truth, chain(3))
    assert gain.equal is None and gain.known == {"edge": None}
    assert gain.node_accuracy == pytest.approx(0.5)


def test_several_tasks_are_averaged():
    truth = torch.tensor([[0, 0, 0], [0, 1, 0]])
    evidence = torch.zeros(2, 3, 2)
    gain = joint_gain(evidence, {}, truth, chain(3))
    assert gain.equal == pytest.approx(0.5)
