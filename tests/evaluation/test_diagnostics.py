"""Diagnostics of labels, from probabilities and beliefs alone."""

import math

import pytest
import torch
from hypothesis import given
from support.strategies import DTYPE, fields
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.evaluation import Diagnosis, join_diagnoses, lift_of_labels, pair_probabilities
from accord.graphs import topology

PATH = topology(torch.tensor([[0, 1], [1, 2]]), 3)


def diagnosis(**changes):
    values = {
        "topology": PATH,
        "labels": torch.tensor([[0, 1, 1]]),
        "alone": torch.tensor([[0, 0, 1]]),
        "probabilities": torch.tensor([[[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]]),
        "pair_probability": torch.tensor([[0.1, 0.4]]),
        "lift": torch.tensor([[-1.0, 0.2]]),
        "converged": torch.tensor([[True]]),
        "residual": torch.tensor([[0.0]]),
    }
    return Diagnosis(**values | changes)


def test_what_stands_out():
    found = diagnosis(truth=torch.tensor([[0, 1, -1]]))
    assert found.disagrees.tolist() == [[False, True, False]]
    assert_close(found.entropy[0, :2], torch.tensor([0.0, math.log(2)], dtype=torch.float64))
    assert found.unlikely.tolist() == [[True, False]]
    assert found.unlikely_edges_of_nodes().tolist() == [[1, 1, 0]]
    summary = found.summary()
    assert (summary.nodes, summary.disagreeing, summary.edges, summary.unlikely) == (3, 1, 2, 1)
    assert (summary.joint_right, summary.alone_right) == (1.0, 0.0)
    # Two labelled nodes: one certain and right; one of confidence 1/2 whose first state is not the true one.
    assert summary.calibration_error == pytest.approx(0.25)
    assert summary.unconverged == []


def test_without_labels_nothing_is_compared():
    summary = diagnosis(converged=torch.tensor([[False]])).summary()
    assert summary.calibration_error is None and summary.joint_right is None and summary.alone_right is None
    assert summary.unconverged == [0]


def test_diagnoses_are_joined():
    both = topology(torch.tensor([[0, 1, 3, 4], [1, 2, 4, 5]]), 6, torch.tensor([0, 0, 0, 1, 1, 1]))
    found = join_diagnoses([diagnosis(), diagnosis(truth=torch.tensor([[1, 1, 1]]))], both)
    assert found.labels.tolist() == [[0, 1, 1, 0, 1, 1]] and found.converged.shape == (1, 2)
    assert found.truth.tolist() == [[-1, -1, -1, 1, 1, 1]] and found.unlikely_edges_of_nodes().sum() == 4


@given(fields(max_nodes=5, min_states=2, tree=True, replicas=((2,),)))
def test_probabilities_of_pairs_are_exact_on_forests(field):
    labels = enumerate_beliefs(field, semiring="max").labels
    exact = enumerate_beliefs(field).edge
    found = pair_probabilities(propagate(field), labels)
    for replica in range(2):
        for column, (s, t) in enumerate(field.edge_index.t().tolist()):
            wanted = exact[replica, column, labels[replica, s], labels[replica, t]].exp()
            assert_close(found[replica, column], wanted)


def test_lift_measures_the_interaction_alone():
    """A table that is a sum over its two ends has none, however it favours single states."""
    apart = torch.tensor([3.0, 0.0], dtype=DTYPE)[:, None] + torch.tensor([0.0, 5.0], dtype=DTYPE)
    agree = math.log(3) * torch.eye(2, dtype=DTYPE)
    field = PairwiseField(PATH.edge_index, torch.zeros(1, 3, 2, dtype=DTYPE), torch.stack([apart, agree])[None])
    lift = lift_of_labels(field, torch.tensor([[0, 1, 1]]))
    # Equal labels: 3/8 together, 1/2 each by itself.
    assert_close(lift, torch.tensor([[0.0, math.log(1.5)]], dtype=DTYPE))
    assert_close(lift_of_labels(field, torch.tensor([[0, 1, 0]]))[0, 1], torch.tensor(math.log(0.5), dtype=DTYPE))
