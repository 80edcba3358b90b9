"""Belief propagation one sweep at a time, to watch how messages change beliefs."""

from collections.abc import Iterator

from torch import Tensor

from accord.field import PairwiseField
from accord.inference._beliefs import Beliefs
from accord.inference._options import Semiring
from accord.inference._propagate import propagate


def trace(
    field: PairwiseField,
    semiring: Semiring = "sum",
    damping: float = 0.0,
    edge_appearance: float | Tensor = 1.0,
    max_sweeps: int = 20,
) -> Iterator[Beliefs]:
    """Beliefs before the first sweep and after each one, until every graph has converged.

    The beliefs after k sweeps are those of `propagate` with `max_sweeps=k`; each is computed from the beginning,
    because messages to start from cannot tell an impossible state from one that may become possible. So n sweeps cost
    as much as n (n + 1) / 2.

    Args:
        field: the field to solve.
        semiring: "sum" for marginals, "max" for the best labelling.
        damping: weight of old messages.
        edge_appearance: as for `propagate`.
        max_sweeps: how many sweeps to show at most.
    """
    for sweeps in range(max_sweeps + 1):
        beliefs = propagate(field, semiring, damping, edge_appearance, max_sweeps=sweeps)
        yield beliefs
        if sweeps and bool(beliefs.converged.all()):
            return
