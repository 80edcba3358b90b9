"""Conditionals of a field against enumeration, and which nodes count where labels are missing."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import fields
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs
from accord.learning.objectives import conditional_scores, pseudolikelihood, pseudolikelihood_loss


def drawn_labels(field, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, field.num_states, (*field.replicas, field.num_nodes), generator=generator)


@given(fields(max_nodes=5), st.integers(0, 2**20))
def test_conditionals_are_those_of_the_joint_distribution(field, seed):
    labels = drawn_labels(field, seed)
    ours = conditional_scores(field, labels).log_softmax(-1)
    for node in range(field.num_nodes):
        others = labels.clone()
        others[..., node] = -1
        exact = enumerate_beliefs(field.clamp(others)).node[..., node, :]
        assert_close(ours[..., node, :], exact, rtol=0, atol=1e-9)


@given(fields(max_nodes=5), st.integers(0, 2**20))
def test_every_node_counts_if_all_labels_are_known(field, seed):
    labels = drawn_labels(field, seed)
    logs, counts = pseudolikelihood(field, labels)
    assert bool((counts == 1).all())
    assert_close(pseudolikelihood_loss(field, labels), -logs.mean(-1))


def test_nodes_with_an_unlabelled_neighbour_do_not_count():
    path = PairwiseField(torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.zeros(1, 5, 2), torch.randn(1, 3, 2, 2))
    logs, counts = pseudolikelihood(path, torch.tensor([[1, 0, -1, 1, 0]]))
    assert counts.tolist() == [[1, 0, 0, 0, 1]]
    assert bool((logs[counts == 0] == 0).all())
    assert bool((pseudolikelihood_loss(path, torch.full((1, 5), -1)) == 0).all())
