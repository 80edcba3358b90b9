"""Transitions that sequences never have, and fields on paths as chains."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DTYPE

from accord import PairwiseField, enumerate_beliefs
from accord.errors import OptionError
from accord.field import Transitions, bio_transitions, chains_of
from accord.field._transitions import is_bio
from accord.inference import eliminate_beliefs
from accord.inference.chains import path_labels, path_likelihood

NAMES = ["B-x", "B-y", "I-x", "I-y", "O"]


def follows_bio(labels):
    """The rule of the scheme, said plainly."""
    before = "O"
    for name in labels:
        if name.startswith("I-") and before[2:] != name[2:]:
            return False
        before = name
    return True


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_bio_transitions_are_the_rule_of_the_scheme(states):
    names = [NAMES[state] for state in states]
    assert (bio_transitions(NAMES).violation(states) is None) == follows_bio(names)


def test_the_first_violation_is_named_and_missing_labels_are_free():
    rule = bio_transitions(NAMES)
    assert rule.violation([4, 0, 2, 3, 3]) == 3
    assert rule.violation([2, 4]) == 0
    assert rule.violation([-1, 2, -1, 3]) is None
    assert Transitions(ends=(1,)).violation([1, 0, 1]) == 2


def test_names_of_other_forms_are_no_bio():
    assert is_bio(NAMES) and not is_bio(["O", "B-x"]) and not is_bio(["NOUN", "VERB"]) and not is_bio(["O", "I-"])
    with pytest.raises(OptionError, match="'NOUN' is not of the BIO scheme"):
        bio_transitions(["O", "NOUN"])
    with pytest.raises(OptionError, match="-1 is no state"):
        Transitions(starts=(-1,))


@st.composite
def path_fields(draw, shared=False):
    """Fields on one to three paths; edges in any order and direction, or one table for all steps."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    states = draw(st.integers(1, 3))
    lead = draw(st.sampled_from([(), (2,)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    starts = [sum(lengths[:place]) for place in range(len(lengths))]
    edges = [(s + i, s + i + 1) for s, length in zip(starts, lengths, strict=True) for i in range(length - 1)]
    if not shared:
        edges = [edge[::-1] if draw(st.booleans()) else edge for edge in draw(st.permutations(edges))]
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    node = torch.randn(*lead, sum(lengths), states, generator=generator, dtype=DTYPE)
    table = torch.randn(*lead, 1 if shared else len(edges), states, states, generator=generator, dtype=DTYPE)
    graph = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
    edge = table.expand(*lead, len(edges), states, states)
    return PairwiseField(index, node, edge, graph, len(lengths))


@given(st.one_of(path_fields(), path_fields(shared=True)), st.integers(0, 99))
def test_chains_of_paths_equal_enumeration(field, seed):
    chains = chains_of(field)
    exact = enumerate_beliefs(field)
    beliefs = eliminate_beliefs(chains.field)
    torch.testing.assert_close(beliefs.log_partition, exact.log_partition)
    torch.testing.assert_close(chains.at_nodes(beliefs.node), exact.node)
    best = enumerate_beliefs(field, semiring="max")
    torch.testing.assert_close(field.score(path_labels(field)), best.log_partition)
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(-1, field.num_states, (field.num_nodes,), generator=generator)
    expected = enumerate_beliefs(field.clamp(labels)).log_partition - exact.log_partition
    torch.testing.assert_close(path_likelihood(field, labels), expected)


@given(path_fields(shared=True), st.integers(0, 99))
def test_the_gradient_of_the_likelihood_is_labels_minus_marginals(field, seed):
    node, edge = field.node.clone().requires_grad_(), field.edge.detach()[..., :1, :, :].clone().requires_grad_()
    own = field.with_potentials(node, edge.expand_as(field.edge))
    labels = torch.randint(field.num_states, (field.num_nodes,), generator=torch.Generator().manual_seed(seed))
    path_likelihood(own, labels).sum().backward()
    exact = enumerate_beliefs(field)
    truth = torch.nn.functional.one_hot(labels, field.num_states)
    torch.testing.assert_close(node.grad, truth - exact.node.exp())
    source, target = field.edge_index
    pairs = truth[source, :, None] * truth[target, None, :] - exact.edge.exp()
    if field.num_edges:
        torch.testing.assert_close(edge.grad, pairs.sum(-3, keepdim=True))


@given(path_fields(), st.integers(0, 99))
def test_barred_transitions_leave_the_other_labellings_alone(field, seed):
    states = field.num_states
    generator = torch.Generator().manual_seed(seed)
    pick = (torch.rand(states, states, generator=generator) < 0.3).nonzero().tolist()
    rule = Transitions(tuple(map(tuple, pick)), (0,) if seed % 2 else (), (states - 1,) if seed % 3 == 0 else ())
    layout = field.structure.paths
    node, edge = rule.bar(field.node, field.edge, field.edge_index, layout)
    barred = field.with_potentials(node, edge)
    for states_of in itertools.islice(itertools.product(range(states), repeat=field.num_nodes), 60):
        labels = torch.tensor(states_of)
        possible = all(rule.violation(part.tolist()) is None for part in labels.split(layout.lengths.tolist()))
        score = barred.score(labels).sum(-1)
        if possible:
            torch.testing.assert_close(score, field.score(labels).sum(-1))
        else:
            assert bool((score == -torch.inf).all())


def test_a_shared_table_stays_shared():
    edge = torch.zeros(1, 1, 2, 2).expand(1, 3, 2, 2)
    field = PairwiseField(torch.tensor([[0, 1, 2], [1, 2, 3]]), torch.zeros(1, 4, 2), edge)
    _, barred = Transitions(pairs=((0, 1),)).bar(field.node, edge, field.edge_index, field.structure.paths)
    assert barred.stride(-3) == 0 and barred[0, 2, 0, 1] == -torch.inf
    assert chains_of(field.with_potentials(edge=barred)).field.edge.shape == (1, 1, 1, 2, 2)


def test_other_graphs_are_no_chains():
    ring = PairwiseField(torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.zeros(3, 2), torch.zeros(3, 2, 2))
    assert (
        chains_of(ring) is None and path_labels(ring) is None and path_likelihood(ring, torch.zeros(3).long()) is None
    )
