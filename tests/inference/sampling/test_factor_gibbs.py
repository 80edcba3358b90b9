"""Gibbs samples of fields with factors against exact marginals, within five standard deviations."""

import pytest
import torch
from inference.factor_cases import factor_fields
from support.strategies import DTYPE

from accord import FactorField, ParityFactors, TableFactors
from accord.errors import InfeasibleError
from accord.inference import eliminate_beliefs, sample_gibbs
from accord.inference.sampling._factor_gibbs import colours


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("replicas", [1, 2])
def test_marginals(replicas):
    field = factor_fields(2, seed=2, forbidden=False, rules=False, replicas=replicas)[0]
    weak = [0.3 * group.values for group in field.groups]  # chains of strong factors take long to forget their start
    field = field.with_potentials(0.3 * field.node, weak)
    count = 1000
    samples = sample_gibbs(field, count, sweeps=30, generator=seeded())
    assert samples.shape == (count, *field.replicas, field.num_nodes)
    share = torch.nn.functional.one_hot(samples, field.num_states).to(DTYPE).mean(0)
    probability = eliminate_beliefs(field).node.exp()
    assert bool(((share - probability).abs() <= 5 * (probability * (1 - probability) / count).sqrt() + 1e-12).all())


def test_forbidden_labellings_are_never_drawn():
    field = factor_fields(4, seed=9, feasible=True)[0]
    samples = sample_gibbs(field, 50, sweeps=5, generator=seeded(1))
    assert bool(field.score(samples).isfinite().all())


def test_variables_of_a_colour_share_no_factor():
    field = factor_fields(20, seed=3)[0]
    classes = colours(field)
    assert torch.equal(torch.cat([colour.nodes for colour in classes]).sort().values, torch.arange(field.num_nodes))
    for colour in classes:
        inside = torch.isin(torch.arange(field.num_nodes), colour.nodes)
        assert all(int(inside[group.scope].sum(1).max()) <= 1 for group in field.groups if group.num_factors)


def test_starts_are_checked():
    odd = ParityFactors(torch.tensor([[0, 1]]), odd=True)
    field = FactorField(torch.zeros(2, 2), [odd])
    assert sample_gibbs(field, 3, sweeps=0, start=torch.tensor([0, 1])).tolist() == [[0, 1]] * 3
    with pytest.raises(InfeasibleError, match="forbidden in graph 0"):
        sample_gibbs(field, start=torch.tensor([1, 1]))
    equal = TableFactors(odd.scope, torch.zeros(1, 2, 2).masked_fill(torch.eye(2) == 0, -torch.inf))
    both = FactorField(torch.zeros(2, 2), [odd, equal])
    with pytest.raises(InfeasibleError):
        sample_gibbs(both)
