"""Samples of chains have the marginals of the field."""

import pytest
import torch

from accord import ChainField
from accord.errors import InfeasibleError
from accord.inference import eliminate_beliefs, sample_exact


def drawn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_samples_have_the_marginals_of_the_field():
    barred = drawn(3, 3)
    barred[0, 1] = -torch.inf
    field = ChainField(drawn(2, 3, 4, 3), barred, torch.tensor([4, 1, 3]), drawn(3), drawn(3))
    samples = sample_exact(field, 20_000, torch.Generator().manual_seed(0))
    assert samples.shape == (20_000, 2, 3, 4)
    assert torch.equal(samples >= 0, field.present.expand(samples.shape))
    beliefs = eliminate_beliefs(field)
    seen = torch.nn.functional.one_hot(samples.clamp_min(0), 3).double().mean(0)[:, field.present]
    torch.testing.assert_close(seen, beliefs.node.exp()[:, field.present].double(), atol=0.02, rtol=0.0)
    assert not bool(((samples[..., :-1] == 0) & (samples[..., 1:] == 1)).any())
    pairs = (samples[..., :-1] * 3 + samples[..., 1:]).clamp_min(0)
    seen = torch.nn.functional.one_hot(pairs, 9).double().mean(0)[:, field.present[:, 1:]]
    expected = beliefs.edge.exp().flatten(-2)[:, field.present[:, 1:]].double()
    torch.testing.assert_close(seen, expected, atol=0.02, rtol=0.0)


def test_the_same_generator_gives_the_same_samples():
    field = ChainField(drawn(5, 6, 3), drawn(3, 3))
    first, second = (sample_exact(field, 3, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)


def test_infeasible_chains_are_named():
    field = ChainField(torch.zeros(2, 3, 2), torch.full((2, 2), -torch.inf))
    with pytest.raises(InfeasibleError, match="sample_exact: chain 0 has no labelling"):
        sample_exact(field)
