"""Arc consistency and the search for labellings, compared with enumeration."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from inference.search_cases import colouring as planted_colouring
from support.strategies import DTYPE, fields

from accord import PairwiseField, propagate
from accord.errors import InfeasibleError, TooLargeError
from accord.inference import _blocks, find_labels, possible_states
from accord.inference.decoding import _decoding
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native


def labellings(field):
    """All labellings of a field without replicas that hold nothing forbidden."""
    every = torch.tensor(list(product(range(field.num_states), repeat=field.num_nodes)))
    return every[field.score(every).isfinite().all(-1)]


def colouring(index, nodes, states):
    flat = PairwiseField(index, torch.zeros(nodes, states), torch.zeros(index.shape[1], states, states))
    return flat.forbid([(state, state) for state in range(states)])


def random_graph(nodes, degree, seed):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes)).T
    return pairs[:, torch.rand(pairs.shape[1], generator=generator) < degree / (nodes - 1)]


@given(fields(max_nodes=6, max_states=3, replicas=((),), barred=0.3))
def test_a_labelling_is_found_if_and_only_if_there_is_one(field):
    feasible = labellings(field)
    if len(feasible):
        labels = find_labels(field, field.node.clamp_min(-9))
        assert bool((feasible == labels).all(-1).any())
    else:
        with pytest.raises(InfeasibleError) as caught:
            find_labels(field, field.node.clamp_min(-9))
        assert caught.value.proved


@given(fields(max_nodes=6, max_states=3, replicas=((),), barred=0.3))
def test_arc_consistency_removes_only_what_is_impossible(field):
    feasible = labellings(field)
    occurring = torch.zeros(field.num_nodes, field.num_states, dtype=torch.bool)
    for labels in feasible:
        occurring[torch.arange(field.num_nodes), labels] = True
    try:
        left = possible_states(field)
    except InfeasibleError as error:
        assert not len(feasible) and error.nodes
        return
    assert not bool((occurring & ~left).any())


@given(fields(max_nodes=6, max_states=3, tree=True, replicas=((),), barred=0.3))
def test_arc_consistency_is_exact_on_forests(field):
    feasible = labellings(field)
    if not len(feasible):
        with pytest.raises(InfeasibleError):
            possible_states(field)
        return
    left = possible_states(field)
    for node, state in left.nonzero().tolist():
        assert bool((feasible[:, node] == state).any())


def test_replicas_are_examined_each_by_itself():
    field = PairwiseField(torch.tensor([[0], [1]]), torch.zeros(2, 2, 2), torch.zeros(1, 2, 2)).forbid([(0, 0)])
    left = possible_states(field.clamp(torch.tensor([[0, -1], [-1, -1]])))
    assert left.tolist() == [[[True, False], [False, True]], [[True, True], [True, True]]]


def test_the_error_names_the_nodes_that_cause_it():
    """Nodes 1 and 4 of a path are clamped; the labels between them must alternate, which does not work out."""
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    field = colouring(path, 10, 2)
    labels = torch.full((10,), -1)
    labels[1] = labels[4] = 0
    with pytest.raises(InfeasibleError, match="no state is left for node") as caught:
        possible_states(field.clamp(labels))
    assert {1, 4} <= set(caught.value.nodes) <= {1, 2, 3, 4}


def test_wide_graphs_are_coloured():
    """Too wide for elimination, and local search alone gets stuck."""
    index = random_graph(150, 7.0, 3)
    field = colouring(index, 150, 4)
    labels = find_labels(field, torch.zeros(150, 4))
    assert bool((labels[index[0]] != labels[index[1]]).all())
    again = find_labels(field, torch.zeros(150, 4))
    assert torch.equal(labels, again)


def forbid_elimination(monkeypatch):
    def too_wide(*_, **__):
        raise TooLargeError("too wide")

    monkeypatch.setattr(_decoding, "eliminate_beliefs", too_wide)


def test_decoding_searches_where_elimination_is_too_wide(monkeypatch):
    forbid_elimination(monkeypatch)
    index = random_graph(40, 6.0, 1)
    generator = torch.Generator().manual_seed(0)
    field = colouring(index, 40, 4).with_potentials(node=torch.randn(40, 4, generator=generator, dtype=torch.float32))
    monkeypatch.setattr(_decoding, "polish", lambda field, folded, edge, barred, labels: labels)  # leaves conflicts
    labels = propagate(field, semiring="max", max_sweeps=1).decode()
    assert bool((labels[index[0]] != labels[index[1]]).all())


@pytest.mark.parametrize(("size", "degree"), [(300, 4.0), (500, 4.5)])
def test_colourings_near_the_threshold_are_decoded(size, degree):
    """Random graphs with a colouring, too wide for elimination, and with beliefs that say nothing."""
    for seed in range(20):
        field = planted_colouring(size, degree, seed)
        labels = propagate(field, semiring="max").decode()
        assert float(field.score(labels)) == 0.0
    assert torch.equal(propagate(field, semiring="max").decode(), labels)


def test_a_contradiction_that_the_compiled_search_finds_is_proved(monkeypatch):
    """Three colours on four nodes that are all linked: arc consistency removes nothing."""
    forbid_elimination(monkeypatch)
    field = colouring(torch.combinations(torch.arange(4)).T, 4, 3)
    with pytest.raises(InfeasibleError, match="component of node 0 .4 nodes. has no labelling") as caught:
        propagate(field, semiring="max").decode()
    assert caught.value.proved and caught.value.nodes == [0, 1, 2, 3]


def test_a_compiled_search_that_gives_up_says_that_there_may_be_a_labelling(monkeypatch):
    forbid_elimination(monkeypatch)
    solve = _native.solve

    def nothing(*given, **options):
        found = solve(*given, **options)
        return found._replace(labels=np.full_like(found.labels, -1))

    monkeypatch.setattr(_native, "solve", nothing)
    monkeypatch.setattr(_decoding, "polish", lambda field, folded, edge, barred, labels: labels)  # leaves conflicts
    field = colouring(torch.combinations(torch.arange(4)).T, 4, 4)
    with pytest.raises(InfeasibleError, match="there may be one") as caught:
        _decoding.decode(field, torch.zeros(4, 4))
    assert not caught.value.proved and caught.value.nodes == [0, 1, 2, 3]


def test_without_a_compiler_the_plain_search_repairs(monkeypatch):
    def fail():
        raise BuildError("no compiler")

    forbid_elimination(monkeypatch)
    monkeypatch.setattr(_native, "load", fail)
    monkeypatch.setattr(_decoding, "polish", lambda field, folded, edge, barred, labels: labels)  # leaves conflicts
    index = random_graph(40, 6.0, 1)
    field = colouring(index, 40, 4)
    labels = _decoding.decode(field, torch.zeros(40, 4))
    assert bool((labels[index[0]] != labels[index[1]]).all())


def test_a_search_that_gives_up_says_that_there_may_be_a_labelling():
    index = random_graph(60, 9.0, 5)
    field = colouring(index, 60, 4)
    with pytest.raises(InfeasibleError, match="there may be one") as caught:
        find_labels(field, torch.zeros(60, 4), max_revisions=600)
    assert not caught.value.proved


def test_impossible_loops_are_proved_impossible():
    """Two colours on an odd ring: arc consistency removes nothing, the search does."""
    ring = torch.stack([torch.arange(7), (torch.arange(7) + 1) % 7])
    field = colouring(ring, 7, 2)
    assert bool(possible_states(field).all())
    with pytest.raises(InfeasibleError, match="there is no labelling") as caught:
        find_labels(field, torch.zeros(7, 2))
    assert caught.value.proved
    with pytest.raises(InfeasibleError, match="has no labelling") as caught:
        propagate(field, semiring="max").decode()
    assert caught.value.nodes == list(range(7)) and caught.value.proved


def test_preferred_states_are_tried_first():
    path = torch.stack([torch.arange(3), torch.arange(1, 4)])
    preference = torch.tensor([[0.0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]], dtype=DTYPE)
    assert find_labels(colouring(path, 4, 3), preference).tolist() == [1, 2, 0, 1]


def test_blocks_of_arcs_give_the_same(monkeypatch):
    """Large graphs are examined some arcs at a time."""
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    clamped = colouring(path, 10, 3).clamp(torch.tensor([0, -1, 1, -1, -1, -1, -1, 2, -1, 0]))
    whole = possible_states(clamped)
    monkeypatch.setattr(_blocks, "NUMBERS_PER_BLOCK", 20)
    assert torch.equal(possible_states(clamped), whole) and not bool(whole.all())
