"""Abstaining: how sure a model must be of a label for a stated precision, learned from validation nodes."""

import math
from collections.abc import Sequence

from torch import Tensor

Curve = list[list[float]]  # [threshold, precision] in rising order: labels at or above the threshold are that precise
STEP = 0.005  # of precision between the points of a curve at least, so that it stays small
SIGMAS = 1.0  # of the small-sample correction


def precision_curve(confidence: Tensor, right: Tensor) -> Curve:
    """The precision that labels reach at or above each confidence, with a correction for small samples.

    The correction is the lower end of Wilson's interval of one standard error: 19 labels, all right, show 0.95.
    A threshold is kept if it gives more than every smaller one, by `STEP` at least.

    Args:
        confidence: [nodes], probability of each label.
        right: [nodes], whether it is right.
    """
    order = confidence.argsort(descending=True)
    sure, hits = confidence[order].tolist(), right[order].double().cumsum(0).tolist()
    last = [place for place in range(len(sure)) if place + 1 == len(sure) or sure[place + 1] < sure[place]]
    curve: Curve = []
    for place in reversed(last):  # from the smallest threshold up
        precision = lower_bound(hits[place], place + 1)
        if not curve or precision // STEP > curve[-1][1] // STEP:
            curve.append([sure[place], precision])
    return curve


def threshold_for(curve: Sequence[Sequence[float]], precision: float) -> float:
    """The smallest threshold that reaches a precision; infinity where none does."""
    return next((threshold for threshold, reached in curve if reached >= precision), math.inf)


def lower_bound(hits: float, count: int) -> float:
    """The lower end of Wilson's interval of a share of `hits` out of `count`."""
    share, square = hits / count, SIGMAS**2
    spread = SIGMAS * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    return (share + square / (2 * count) - spread) / (1 + square / count)
