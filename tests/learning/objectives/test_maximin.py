"""The maximin game's gradient is the likelihood's: against autograd through enumeration, in float64."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import fields
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs
from accord.learning import GameOptions
from accord.learning.objectives import maximin_objective

TIGHT = {"rtol": 0, "atol": 1e-8}


def gradients(value, *inputs):
    return torch.autograd.grad(value.sum(), inputs, allow_unused=True, materialize_grads=True)


def leaves(field):
    node, edge = field.node.clone().requires_grad_(), field.edge.clone().requires_grad_()
    return node, edge, PairwiseField(field.edge_index, node, edge, field.graph, field.num_graphs)


def true_likelihood(field, labels):
    return field.score(labels) - enumerate_beliefs(field).log_partition


def check(field, labels, options):
    node, edge, live = leaves(field)
    objective, likelihood = maximin_objective(live, labels[None] if field.replicas else labels, options)
    exact = true_likelihood(live, labels)
    assert_close(likelihood, exact.detach(), **TIGHT)
    for ours, theirs in zip(gradients(objective, node, edge), gradients(exact, node, edge), strict=True):
        assert_close(ours, theirs, **TIGHT)


@given(fields(max_nodes=6), st.integers(0, 2**20))
def test_exact_beliefs_give_the_gradient_of_the_likelihood(field, seed):
    labels = torch.randint(0, field.num_states, (field.num_nodes,), generator=torch.Generator().manual_seed(seed))
    check(field, labels, GameOptions(exact=True))


@given(fields(max_nodes=6, tree=True), st.integers(0, 2**20))
def test_propagated_beliefs_give_it_too_on_forests(field, seed):
    labels = torch.randint(0, field.num_states, (field.num_nodes,), generator=torch.Generator().manual_seed(seed))
    check(field, labels, GameOptions(damping=0.0, max_sweeps=50))


@given(fields(max_nodes=5, replicas=((),)), st.data())
def test_missing_labels_are_summed_out(field, data):
    states = st.integers(-1, field.num_states - 1)
    labels = torch.tensor(data.draw(st.lists(states, min_size=field.num_nodes, max_size=field.num_nodes)))
    node, edge, live = leaves(field)
    objective, likelihood = maximin_objective(live, labels, GameOptions(exact=True))
    exact = enumerate_beliefs(live.clamp(labels)).log_partition - enumerate_beliefs(live).log_partition
    assert_close(likelihood, exact.detach(), **TIGHT)
    for ours, theirs in zip(gradients(objective, node, edge), gradients(exact, node, edge), strict=True):
        assert_close(ours, theirs, **TIGHT)
