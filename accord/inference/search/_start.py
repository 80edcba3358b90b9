"""Labels that a search may begin with or go on from: best states of max-product beliefs, and what they decode to."""

from collections.abc import Callable

import numpy as np
import torch

from accord.errors import InfeasibleError
from accord.field import PairwiseField
from accord.field.factors import FactorField, TableFactors
from accord.inference._extended import has_infinity
from accord.inference.search._fixed import WORK
from accord.inference.search._native import MOST

FEW_NODES = 100  # with fewer, the search finds as good labels at once
SHARE = 0.1  # of the budget
SWEEPS = 200
SECONDS = 4e-9  # of a sweep for each entry of a table, on a slow machine
DAMPING = 0.5
DECODED_SHARE = 0.5  # of the budget, that decoded labels may take
DECODING = 1.5, 1e-5  # seconds of decoding, for a second of its work and for a node, on a slow machine


def first_labels(field: FactorField, numbers: int, budget: float) -> np.ndarray | None:
    """Labels [R, nodes] from sweeps that take a small share of the budget, or None where there is no time for them.

    How many sweeps are run depends on the field and the budget, not on the time that they take.

    Args:
        field: the field.
        numbers: how many potentials it has.
        budget: seconds.
    """
    sweeps = min(SWEEPS, int(SHARE * budget / (SECONDS * max(numbers, 1))))
    if field.num_nodes < FEW_NODES or sweeps < 2:
        return None
    from accord.inference._propagate import propagate  # which decodes by this package

    with torch.no_grad():
        try:
            beliefs = propagate(field, semiring="max", damping=DAMPING, max_sweeps=sweeps)
        except InfeasibleError:  # the search finds out why
            return None
    return beliefs.node.argmax(-1).reshape(-1, field.num_nodes).cpu().numpy()


def decoding(field: PairwiseField | FactorField, numbers: int, budget: float) -> Callable[[], np.ndarray | None] | None:
    """A function that decodes max-product beliefs into labels [R, nodes], or None where there is no time for that.

    The search goes on from these labels, so that it never ends below them. Forbidden combinations, which decoding may
    take long to avoid, are left to the search.

    Args:
        field: the field.
        numbers: how many potentials it has.
        budget: seconds.
    """
    nodes = field.replicas.numel() * field.num_nodes
    seconds = SWEEPS * SECONDS * numbers + DECODING[0] * min(WORK * nodes, MOST) + DECODING[1] * nodes
    if seconds > DECODED_SHARE * budget or _forbids(field):
        return None
    from accord.inference._propagate import propagate

    def decoded() -> np.ndarray | None:
        with torch.no_grad():
            try:
                labels = propagate(field, semiring="max").decode()
            except InfeasibleError:
                return None
        return labels.reshape(-1, field.num_nodes).cpu().numpy()

    return decoded


def _forbids(field: PairwiseField | FactorField) -> bool:
    """Whether the field may have forbidden combinations; rules may."""
    if isinstance(field, PairwiseField):
        return has_infinity(field.edge)
    return any(not isinstance(group, TableFactors) or has_infinity(group.tables) for group in field.groups)
