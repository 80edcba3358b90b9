"""Labels from which `maximise` goes on: it never ends below what beliefs decode to, where that takes little time."""

import numpy as np
import torch
from inference.search_cases import glass, small_fields

from accord import PairwiseField, maximise, propagate
from accord.field.factors import FactorField, TableFactors
from accord.inference.search._start import decoding


def random_triples(num_nodes, count, seed):
    rng = np.random.default_rng(seed)
    node = torch.tensor(0.1 * rng.normal(size=(num_nodes, 2)))
    scope = torch.tensor(np.stack([rng.permutation(num_nodes)[:3] for _ in range(count)]))
    return FactorField(node, [TableFactors(scope, torch.tensor(rng.normal(size=(count, 2, 2, 2))))])


def random_pairs(num_nodes, degree, states, seed):
    rng = np.random.default_rng(seed)
    ends = np.unique(np.sort(rng.integers(num_nodes, size=(num_nodes * degree // 2, 2)), axis=1), axis=0)
    ends = ends[ends[:, 0] != ends[:, 1]]
    node, edge = rng.normal(size=(num_nodes, states)), rng.normal(size=(len(ends), states, states))
    return PairwiseField(torch.tensor(ends.T.copy()), torch.tensor(node), torch.tensor(edge))


def test_a_field_with_factors_does_not_end_below_its_decoded_beliefs():
    for seed in range(2):
        field = random_triples(2000, 3000, seed)
        assert maximise(field, budget=2.0).score >= field.score(propagate(field, semiring="max").decode()) - 1e-9


def test_a_large_pairwise_field_does_not_end_below_its_decoded_beliefs():
    field = random_pairs(20000, 4, 3, seed=0)
    assert maximise(field, budget=2.0).score >= field.score(propagate(field, semiring="max").decode()) - 1e-9


def test_replicas_are_decoded_too():
    field = random_pairs(200, 4, 3, seed=1)
    field = field.with_potentials(node=torch.stack([field.node, -field.node]))
    decoded = decoding(field, 1, budget=2.0)
    assert decoded is not None and decoded().shape == (2, 200)


def test_little_time_is_not_spent_on_decoding():
    assert decoding(glass(32), 10_000, budget=0.01) is None


def test_forbidden_pairs_are_left_to_the_search():
    assert decoding(small_fields(20, seed=0), 1, budget=2.0) is None
    assert decoding(small_fields(20, seed=0, forbidden=0.0), 1, budget=2.0) is not None
