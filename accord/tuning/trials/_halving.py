"""Successive halving: many candidates with a small budget, the best of them with a larger one, and so on."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence

Rank = tuple[float, ...]  # higher is better; the first number counts most
Evaluate = Callable[[Sequence[int], int], Mapping[int, Rank]]
KEEP = 1 / 3  # share of the candidates that go on


def successive_halving(
    candidates: Sequence[int],
    rungs: int,
    evaluate: Evaluate,
    keep: float = KEEP,
    always: Collection[int] = (),
) -> list[int]:
    """Rank candidates (Jamieson and Talwalkar 2016): the best share of each rung goes on to the next.

    Args:
        candidates: their numbers.
        rungs: how many budgets there are.
        evaluate: given candidates, best first, and the number of a rung, returns the rank of each one that was
            evaluated. It may leave candidates out, when its time is over; they end at the rung before.
        keep: share that goes on.
        always: candidates that go on whatever their rank, beside the best.

    Returns:
        All candidates that were evaluated, best first: by the last rung that they reached, then by their rank there.
    """
    standing: dict[int, tuple[int, Rank]] = {}
    going = list(candidates)
    for rung in range(rungs):
        found = evaluate(going, rung)
        standing |= {number: (rung, rank) for number, rank in found.items()}
        ranked = sorted(found, key=lambda number: found[number], reverse=True)
        best = ranked[: max(1, math.ceil(keep * len(ranked)))]
        going = list(dict.fromkeys([*best, *(number for number in always if number in found)]))
        if not going:
            break
    return sorted(standing, key=lambda number: standing[number], reverse=True)


def as_rank(*numbers: float | None) -> Rank:
    """Numbers as a rank; one that is missing or not a number ranks lowest."""
    return tuple(-math.inf if number is None or math.isnan(number) else number for number in numbers)
