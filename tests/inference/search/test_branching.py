"""The complete search on soft arc consistent losses: proofs, and bounds that hold when it is stopped."""

import numpy as np
import pytest
import torch
from inference.search_cases import small_fields, transmitters
from support.strategies import union

from accord import PairwiseField, maximise
from accord.inference import eliminate_beliefs
from accord.inference.search import _native
from accord.inference.search._ragged import ragged

BRANCHING = 8


def bounds_and_scores(field, **options):
    """Of each graph of a batch, with the optimum."""
    model = ragged(field)
    found = _native.solve(model, 60.0, seed=0, **options)
    graph, count = field.graph.numpy(), field.num_graphs
    bound = np.bincount(graph[np.unique(found.component, return_index=True)[1]], weights=found.bound, minlength=count)
    best = eliminate_beliefs(field, semiring="max").log_partition.numpy()
    return bound, model.scores(found.labels, graph, count), best


@pytest.mark.parametrize("work", [1e-8, 1e-6, 1e-5, 1e-4])
def test_bounds_hold_wherever_the_search_stops(work):
    field = small_fields(300, seed=21, states=5, largest=8)
    bound, score, best = bounds_and_scores(field, work=work, ways=BRANCHING)
    slack = 1e-9 * (1 + np.abs(best))
    assert (bound >= best - slack).all() and (score <= best + slack).all()
    if work == 1e-4:
        assert (score >= best - slack).all() and (bound <= best + slack).all()


@pytest.mark.parametrize("offset", [-1000.0, 1000.0])
def test_a_constant_in_every_table_does_not_mislead_the_search(offset):
    field = small_fields(150, seed=116, states=3, largest=10)
    bound, score, best = bounds_and_scores(field.with_potentials(edge=field.edge + offset), work=1e-4, ways=BRANCHING)
    np.testing.assert_allclose([bound, score], [best, best], rtol=1e-8, atol=1e-6)


def test_bounds_fall_while_the_search_goes_on():
    fields = [transmitters(12, 40, 5, seed) for seed in range(10)]
    least = np.full(10, np.inf)
    for work in (1e-5, 1e-4, 1e-3):
        bound, _, best = bounds_and_scores(union(fields), work=work, ways=BRANCHING)
        assert (bound >= best - 1e-6).all() and (bound <= least + 1e-6).all()
        least = bound
    assert (least <= best + 1e-6).all()


@pytest.mark.parametrize("seed", range(6))
def test_costs_of_near_channels_are_proved(seed):
    """Bounds of messages alone stay near 0 here."""
    found = maximise(transmitters(30, 150, 12, seed), budget=30.0)
    assert found.optimal and found.method.tolist()[0].endswith("branch and bound")


@pytest.mark.parametrize("seed", range(4))
def test_labels_without_any_cost_are_found(seed):
    """A bound of 0 is reached as soon as a labelling without violations is found."""
    found = maximise(transmitters(60, 400, 20, seed), budget=30.0)
    assert found.optimal and found.score == 0


def test_a_contradiction_of_costs_above_the_bound_is_proved():
    """Five nodes, four channels: some pair must be equal, at the least cost of any pair."""
    pairs = torch.triu_indices(5, 5, 1)
    weight = torch.arange(1.0, 11.0, dtype=torch.float64)
    edge = -weight[:, None, None] * torch.eye(4, dtype=torch.float64)
    model = ragged(PairwiseField(pairs, torch.zeros(5, 4, dtype=torch.float64), edge))
    found = _native.solve(model, 60.0, seed=0, work=1e-3, ways=BRANCHING)
    assert found.bound.tolist() == [-1.0] and (found.proof > 0).all()
