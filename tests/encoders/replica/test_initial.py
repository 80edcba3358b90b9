"""Initial weights: the documented ranges, and a replica's own seed."""

import math

import pytest
import torch

from accord.encoders.replica import constant_weights, derive_seed, fan_in_weights, glorot_weights

SEEDS = list(range(40))


@pytest.mark.parametrize(
    ("weights", "bound"),
    [
        (glorot_weights(SEEDS, "w", (3, 5)), math.sqrt(6 / 8)),
        (fan_in_weights(SEEDS, "w", (4, 5), 9), 1 / 3),
    ],
    ids=["glorot", "fan in"],
)
def test_weights_fill_their_range(weights, bound):
    values = weights.detach()
    assert len(values) == len(SEEDS)
    assert float(values.abs().max()) == pytest.approx(bound, rel=0.02)
    assert float(values.abs().max()) <= bound
    assert float(values.mean()) == pytest.approx(0, abs=4 * bound / math.sqrt(3 * values.numel()))


def test_weights_depend_on_the_replicas_seed_and_the_name_only():
    weights = fan_in_weights([1, 2, 3], "w", (4,), 4)
    assert torch.equal(fan_in_weights([3], "w", (4,), 4)[0], weights[2])
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(fan_in_weights([3], "v", (4,), 4)[0], weights[2])


def test_constant_weights():
    assert torch.equal(constant_weights([1, 2], (3,), 0.5), torch.full((2, 3), 0.5))


def test_derived_seeds_are_fixed():
    """A change of this function would change the initial weights of every model."""
    assert derive_seed(3, "scorer.weight") == 8512181716962516942
    assert derive_seed(3, "a", 1) != derive_seed(3, "a", 2) != derive_seed(4, "a", 2)
    assert 0 <= derive_seed(-1) < 2**63
