"""Labels that a search may begin with: the best states of max-product beliefs, on large fields with factors."""

import numpy as np
import torch

from accord.errors import InfeasibleError
from accord.field.factors import FactorField

FEW_NODES = 100  # with fewer, the search finds as good labels at once
SHARE = 0.1  # of the budget
SWEEPS = 200
SECONDS = 4e-9  # of a sweep for each entry of a table, on a slow machine
DAMPING = 0.5


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
