"""Counter-based dropout: uniform, independent, and the same for any set of replicas."""

import itertools

import pytest
import torch

from accord.encoders import Noise
from accord.encoders.replica._noise import mix
from accord.errors import OptionError

ROWS, CHANNELS = 500, 64


def mask(seed, step, layer, p=0.5):
    return Noise([seed], step).keep(ROWS, CHANNELS, p, layer)[0][:, 0].double()


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.6, 0.9])
def test_the_fraction_that_is_dropped(p):
    keep, scale = Noise(range(20), 3).keep(ROWS, CHANNELS, p, 1)
    count = keep.numel()
    assert float(keep.double().mean()) == pytest.approx(1 - p, abs=4 * (p * (1 - p) / count) ** 0.5)
    assert scale == pytest.approx(1 / (1 - p), rel=2e-4)
    for axis in ((0, 1), (1, 2), (0, 2)):  # the same for rows, channels and replicas
        share = keep.double().mean(axis)
        spread = (p * (1 - p) * len(share) / count) ** 0.5
        assert float((share - 1 + p).abs().max()) < 5 * spread
        assert float(share.std()) == pytest.approx(spread, rel=0.4)


def test_all_sixteen_bits_are_uniform():
    """Chi-square test over 16 x 16 cells: thresholds at 16 levels for pairs of nearby elements."""
    noise = Noise([1234], 5)
    level = sum(noise.keep(ROWS, CHANNELS, p / 16, 2)[0][:, 0].long() for p in range(1, 16))
    for shift in (1, 2, CHANNELS, CHANNELS + 1):
        first, second = level.flatten()[:-shift], level.flatten()[shift:]
        counts = torch.bincount(first * 16 + second, minlength=256).double()
        expected = counts.sum() / 256
        chi = float(((counts - expected) ** 2 / expected).sum())
        assert 160 < chi < 360  # 255 degrees of freedom: mean 255, deviation 22.6


def test_streams_are_independent():
    """For seeds, steps and layers that are close together, far apart, or swapped."""
    streams = [
        mask(seed, step, layer)
        for seed, step, layer in itertools.product((0, 1, 2, 2**31, 2**33 + 1, -1), (0, 1, 1000), (0, 1, 1000))
    ]
    flat = torch.stack([stream.flatten() for stream in streams])
    correlation = torch.corrcoef(flat).fill_diagonal_(0)
    assert float(correlation.abs().max()) < 5.5 / (ROWS * CHANNELS) ** 0.5
    # Rows, and channels, within one mask.
    for matrix in (streams[0], streams[0].t()):
        inner = torch.corrcoef(matrix).fill_diagonal_(0)
        assert float(inner.abs().max()) < 5.5 / matrix.shape[1] ** 0.5


def test_a_replicas_mask_does_not_depend_on_other_replicas():
    seeds = [7, 0, 123456789012, 7]
    together = Noise(torch.tensor(seeds), 9).keep(ROWS, 5, 0.3, 2)[0]
    for number, seed in enumerate(seeds):
        assert torch.equal(Noise([seed], 9).keep(ROWS, 5, 0.3, 2)[0][:, 0], together[:, number])


@pytest.mark.parametrize("step", [0, 1, 7 * 1_000_003 + 5, 2**31, 2**40 + 3, -1])
def test_a_step_on_the_device_gives_the_same_masks(step):
    """To the bit: updates replayed from a CUDA graph read the number of the step from device memory."""
    seeds = torch.tensor([7, 0, 123456789012, -3])
    wanted, found = (Noise(seeds, number).keep(ROWS, 5, 0.3, 2)[0] for number in (step, torch.tensor(step)))
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("channels", [1, 2, 7])
def test_single_elements_equal_those_of_the_whole_mask(channels):
    noise = Noise([3, 4], 1)
    whole, scale = noise.keep(50, channels, 0.4, 6)
    row, channel = torch.meshgrid(torch.arange(50), torch.arange(channels), indexing="ij")
    some, same = noise.keep_at(row.flatten(), channel.flatten(), channels, 0.4, 6)
    assert same == scale
    assert torch.equal(some.view(50, channels, 2).transpose(1, 2), whole)


def test_dropout_keeps_the_mean_and_passes_gradients():
    h = torch.ones(ROWS, 2, CHANNELS, dtype=torch.float64, requires_grad=True)
    noise = Noise([1, 2], 0)
    out = noise.dropout(h, 0.3, 1)
    assert set(out.unique().tolist()) <= {0.0, noise.keep(1, 1, 0.3, 1)[1]}
    assert float(out.detach().mean()) == pytest.approx(1.0, abs=0.01)
    out.sum().backward()
    assert torch.equal(h.grad, out.detach())
    assert noise.dropout(h, 0.0, 1) is h


def test_the_hash_is_a_fixed_function():
    """A resumed run needs the same masks, so they must not change between versions or machines."""
    assert mix(torch.arange(4, dtype=torch.int32)).tolist() == [mix_reference(n) for n in range(4)]
    assert mix(torch.tensor([-1, -(2**31)], dtype=torch.int32)).tolist() == [
        mix_reference(2**32 - 1),
        mix_reference(2**31),
    ]


def mix_reference(x):
    """lowbias32 on Python's unbounded integers."""
    x ^= x >> 16
    x = x * 0x7FEB352D % 2**32
    x ^= x >> 15
    x = x * 0x846CA68B % 2**32
    x ^= x >> 16
    return x - 2**32 if x >= 2**31 else x


@pytest.mark.parametrize("p", [-0.1, 1.0])
def test_impossible_probabilities_are_refused(p):
    with pytest.raises(OptionError):
        Noise([1], 1).keep(2, 2, p, 0)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_no_nodes_have_an_empty_mask(channels):
    keep, scale = Noise([0, 1], 2).keep(0, channels, 0.5, 1)
    assert keep.shape == (0, 2, channels) and scale == 2.0
