"""Fused attention against the plain version; in Triton's interpreter if there is no GPU (see tests/conftest.py)."""

import pytest
import torch
from encoders.encoder_cases import random_batch
from support.matrix import matrix
from support.triton_interpreter import DEVICE

from accord.encoders import Noise
from accord.encoders.replica._attention import attend
from accord.encoders.replica._pattern import arc_pattern
from accord.encoders.replica.triton import fused_attention

SEEDS = [5, 2**40 + 1]
HEADS = 3
DROPOUT, LAYER = 0.4, 7


def inputs(pattern, channels, scale=1.0):
    generator = torch.Generator().manual_seed(channels)
    shapes = (pattern.num_nodes, len(SEEDS), HEADS, channels), *[(len(SEEDS), HEADS, channels)] * 2
    return [(scale * torch.randn(*shape, generator=generator)).to(DEVICE) for shape in shapes]


def plain(h, source, target, pattern, noise):
    scores = torch.linalg.vecdot(h, source), torch.linalg.vecdot(h, target)
    return attend(h, *scores, pattern, 0.2, noise, DROPOUT, LAYER)


def fused(h, source, target, pattern, noise):
    keep, scale = (None, 1.0) if noise is None else noise.keep(pattern.num_arcs, HEADS, DROPOUT, LAYER)
    return fused_attention(h, source, target, pattern, 0.2, keep, scale)


def with_gradients(function, tensors, pattern, noise):
    leaves = [tensor.clone().requires_grad_() for tensor in tensors]
    out = function(*leaves, pattern, noise)
    weight = torch.linspace(-1, 2, out.numel(), dtype=torch.float64).view(out.shape).to(out)
    (out * weight).sum().backward()
    return [out.detach(), *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("channels", [1, 6, matrix(300)])
def test_fused_attention_equals_the_plain_version(channels, drops):
    pattern = arc_pattern(random_batch().to(DEVICE, torch.float64), True)
    noise = Noise(torch.tensor(SEEDS, device=DEVICE), 3) if drops else None
    tensors = inputs(pattern, channels, channels**-0.5)
    found = with_gradients(fused, tensors, pattern, noise)
    wanted = with_gradients(plain, [tensor.double() for tensor in tensors], pattern, noise)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs.float(), rtol=1e-4, atol=1e-5)


def test_half_precision_is_summed_in_float32():
    pattern = arc_pattern(random_batch().to(DEVICE, torch.float64), True)
    h, source, target = inputs(pattern, 6)
    tensors = [h.bfloat16(), source, target]
    found = with_gradients(fused, tensors, pattern, None)
    wanted = with_gradients(plain, [tensor.double() for tensor in tensors], pattern, None)
    assert found[0].dtype == found[1].dtype == torch.bfloat16 and found[2].dtype == torch.float32
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine.double(), theirs, rtol=2e-2, atol=4e-2)


def test_huge_scores_do_not_overflow_and_nodes_without_arcs_get_zero():
    batch = random_batch().to(DEVICE, torch.float64)
    pattern = arc_pattern(batch, False)
    tensors = inputs(pattern, 2, 1e3)
    out = fused(*tensors, pattern, None)
    assert out.isfinite().all()
    assert (out[pattern.start.diff() == 0] == 0).all() and float(out.abs().sum()) > 0


def test_results_are_deterministic():
    pattern = arc_pattern(random_batch().to(DEVICE, torch.float64), True)
    tensors = inputs(pattern, 6)
    first, second = (with_gradients(fused, tensors, pattern, None) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_bias_is_added():
    pattern = arc_pattern(random_batch().to(DEVICE, torch.float64), True)
    tensors = inputs(pattern, 6)
    tensors.append(torch.linspace(-1, 1, tensors[1].numel()).view_as(tensors[1]).to(DEVICE))
    found = with_gradients(
        lambda h, s, t, b, p, _: fused_attention(h, s, t, p, 0.2, None, 1.0, b), tensors, pattern, None
    )
    doubles = [tensor.double() for tensor in tensors]
    wanted = with_gradients(lambda h, s, t, b, p, n: plain(h, s, t, p, n) + b, doubles, pattern, None)
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs.float(), rtol=1e-4, atol=1e-5)
