"""Abstaining: thresholds that reach a stated precision on validation nodes."""

import math

import pytest
import torch

from accord.evaluation import precision_curve, threshold_for
from accord.evaluation._abstaining import STEP, lower_bound


def test_the_threshold_is_the_smallest_that_reaches_the_precision():
    generator = torch.Generator().manual_seed(0)
    sure = torch.rand(5000, generator=generator)
    right = torch.rand(5000, generator=generator) < sure  # as right as they are sure
    curve = precision_curve(sure, right)
    assert len(curve) <= 1 / STEP and curve == sorted(curve)
    for target in (0.6, 0.8, 0.9, 0.95):
        limit = threshold_for(curve, target)
        assert right[sure >= limit].double().mean() >= target
        # At or above t, labels are right with probability (1 + t) / 2.
        assert limit == pytest.approx(2 * target - 1, abs=0.08)
        fresh = torch.rand(20000, generator=generator)
        hits = torch.rand(20000, generator=generator) < fresh
        assert hits[fresh >= limit].double().mean() >= target - 0.01


def test_small_samples_promise_less():
    assert lower_bound(19, 19) == pytest.approx(0.95)
    assert threshold_for(precision_curve(torch.full((18,), 0.99), torch.ones(18)), 0.95) == math.inf
    assert threshold_for(precision_curve(torch.full((19,), 0.99), torch.ones(19)), 0.95) == pytest.approx(0.99)
    assert threshold_for(precision_curve(torch.empty(0), torch.empty(0)), 0.5) == math.inf
    assert lower_bound(0, 5) == pytest.approx(0)
