"""Calibration: whether predictions are correct as often as their probabilities say."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torchmetrics.functional.classification import multiclass_calibration_error

CALIBRATION_BINS = 15  # of equal width, for the reliability diagram and the calibration error alike


@dataclass(frozen=True)
class Reliability:
    """Mean confidence, accuracy and number of nodes of each bin of confidence; empty bins are left out."""

    confidence: list[float]
    accuracy: list[float]
    nodes: list[int]


def expected_calibration_error(probabilities: Tensor, truth: Tensor, bins: int = CALIBRATION_BINS) -> float:
    """Mean gap between confidence and accuracy over bins of confidence of equal width (Guo et al. 2017).

    Args:
        probabilities: [nodes, states].
        truth: [nodes], -1 where a label is missing.
        bins: number of bins.
    """
    known = truth >= 0
    if not bool(known.any()):
        return float("nan")
    value = multiclass_calibration_error(
        probabilities[known], truth[known], num_classes=probabilities.shape[-1], n_bins=bins
    )
    return float(value)


def reliability(probabilities: Tensor, truth: Tensor, bins: int = CALIBRATION_BINS) -> Reliability:
    """The content of a reliability diagram.

    The mean gap between accuracy and confidence, weighted by nodes, is the `expected_calibration_error`.

    Args:
        probabilities: [nodes, states].
        truth: [nodes], -1 where a label is missing.
        bins: number of bins; a confidence of exactly 1 has a bin of its own, as in torchmetrics.
    """
    known = truth >= 0
    confidence, choice = probabilities[known].max(-1)
    right = (choice == truth[known]).double()
    boundaries = torch.linspace(0, 1, bins + 1, dtype=confidence.dtype)
    place = torch.bucketize(confidence, boundaries, right=True) - 1
    count = torch.bincount(place, minlength=bins + 1)
    full = count > 0
    sums = [torch.bincount(place, values.double(), bins + 1) for values in (confidence, right)]
    means = [(total[full] / count[full]).tolist() for total in sums]
    return Reliability(means[0], means[1], count[full].tolist())
