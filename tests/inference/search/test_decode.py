"""Decoding of fields with factors: exact where elimination is cheap, allowed wherever that is possible."""

import numpy as np
import pytest
import torch
from inference.factor_cases import factor_fields

from accord.errors import InfeasibleError
from accord.field.factors import FactorField, OrFactors, TableFactors
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native, decode_factors


def random_field(num_nodes, num_factors, seed, forbidden=0.0):
    """Factors of three binary variables drawn at random."""
    rng = np.random.default_rng(seed)
    scope = np.stack([rng.permutation(num_nodes)[:3] for _ in range(num_factors)])
    tables = rng.normal(size=(num_factors, 2, 2, 2))
    barred = rng.random(tables.shape) < forbidden
    barred[:, 0, 0, 0] = False
    tables[barred] = -np.inf
    return FactorField(
        torch.zeros(num_nodes, 2, dtype=torch.float64), [TableFactors(torch.tensor(scope), torch.tensor(tables))]
    )


@pytest.mark.parametrize("compiled", [True, False])
def test_small_fields_are_decoded_exactly(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(_native, "load", fail)
    field, best = factor_fields(100, seed=5, replicas=2, feasible=True)
    labels = decode_factors(field, torch.zeros(2, field.num_nodes, field.num_states))
    torch.testing.assert_close(field.score(labels), torch.tensor(best))


def fail():
    raise BuildError("no compiler")


def test_trees_of_factors_are_decoded_exactly_with_ties():
    """A long chain of triples, each of which must have an odd sum; without evidence all beliefs are equal."""
    size = 20001
    scope = torch.stack([torch.arange(0, size - 2, 2), torch.arange(1, size - 1, 2), torch.arange(2, size, 2)], dim=1)
    odd = torch.tensor([[[-torch.inf, 0.0], [0.0, -torch.inf]], [[0.0, -torch.inf], [-torch.inf, 0.0]]])
    field = FactorField(torch.zeros(size, 2), [TableFactors(scope, odd[None])])
    labels = decode_factors(field, torch.zeros(1, size, 2))
    assert float(field.score(labels[0])) == 0.0


def test_wide_fields_are_repeatable_and_above_single_changes():
    field = random_field(400, 900, seed=0)
    beliefs = torch.randn(1, 400, 2, generator=torch.Generator().manual_seed(0))
    one, two = (decode_factors(field, beliefs) for _ in range(2))
    assert torch.equal(one, two)
    assert field.score(one[0]) > field.score(beliefs[0].argmax(-1)) + 100


@pytest.mark.parametrize("compiled", [True, False])
def test_forbidden_combinations_are_avoided(compiled, monkeypatch):
    if not compiled:
        monkeypatch.setattr(_native, "load", fail)
    field = random_field(60, 120, seed=1, forbidden=0.1)
    labels = decode_factors(field, torch.zeros(1, 60, 2))
    assert field.score(labels[0]) > -torch.inf


def test_contradictions_are_reported():
    node = torch.zeros(4, 2)
    node[0, 0], node[1:, 1] = -torch.inf, -torch.inf
    with pytest.raises(InfeasibleError, match="decode.*node 0.*4 nodes") as error:
        decode_factors(FactorField(node, [OrFactors(torch.arange(4)[None])]), torch.zeros(1, 4, 2))
    assert error.value.proved and error.value.nodes == [0, 1, 2, 3]


def test_what_is_not_found_is_not_called_impossible(monkeypatch):
    field = random_field(30, 40, seed=2)
    solve = _native.solve
    monkeypatch.setattr(
        _native, "solve", lambda *a, **k: (f := solve(*a, **k))._replace(labels=np.full_like(f.labels, -1))
    )
    with pytest.raises(InfeasibleError, match="there may be one") as error:
        decode_factors(field, torch.zeros(1, 30, 2))
    assert not error.value.proved
