"""Rules over many variables as automata: logic, counts, parity, and agreement of a whole clique."""

import torch
from torch import Tensor

from accord.errors import FieldError
from accord.field.factors._groups import AutomatonFactors
from accord.graphs._checks import check_integer, check_numbers

BARRED = -torch.inf


class OrFactors(AutomatonFactors):
    """The first variable is 1 if and only if any of the others is. All variables have two states.

    Args:
        scope: [factors, order].
    """

    def __init__(self, scope: Tensor) -> None:
        # 1: the first is 0, so all must be. 2: the first is 1, and no other was yet. 3: one was.
        rows = [[1, 2], [1, -1], [2, 3], [3, 3]]
        super().__init__(scope, _like(scope, rows), _scores(scope, [BARRED, 0.0, BARRED, 0.0]))


class AndFactors(AutomatonFactors):
    """The first variable is 1 if and only if all the others are. All variables have two states.

    Args:
        scope: [factors, order].
    """

    def __init__(self, scope: Tensor) -> None:
        # 1: the first is 0, and no other was yet. 2: one was. 3: the first is 1, so all must be.
        rows = [[1, 3], [2, 1], [2, 2], [-1, 3]]
        super().__init__(scope, _like(scope, rows), _scores(scope, [BARRED, BARRED, 0.0, 0.0]))


class AtMostOneFactors(AutomatonFactors):
    """At most one of the variables is 1. All variables have two states.

    Args:
        scope: [factors, order].
    """

    def __init__(self, scope: Tensor) -> None:
        super().__init__(scope, _like(scope, [[0, 1], [1, -1]]), _scores(scope, [0.0, 0.0]))


class ParityFactors(AutomatonFactors):
    """An even number of the variables is 1, or an odd one. All variables have two states.

    Args:
        scope: [factors, order].
        odd: whether the number is odd.
    """

    def __init__(self, scope: Tensor, odd: bool = False) -> None:
        final = [BARRED, 0.0] if odd else [0.0, BARRED]
        super().__init__(scope, _like(scope, [[0, 1], [1, 0]]), _scores(scope, final))


class PottsFactors(AutomatonFactors):
    """A score for cliques whose variables all have the same state (the P^n Potts model, Kohli et al. 2007).

    Args:
        scope: [factors, order].
        weight: the score of agreement: a number, [factors], or [*replicas, factors, states] with one for each state.
            Negative ones favour disagreement.
        num_states: how many states the variables have.
    """

    def __init__(self, scope: Tensor, weight: float | Tensor, num_states: int) -> None:
        index = check_integer(scope, "scope", "PottsFactors")
        default = torch.zeros((), device=index.device, dtype=torch.get_default_dtype())
        like = weight if isinstance(weight, Tensor) and weight.is_floating_point() else default
        values = check_numbers(weight, "weight", "PottsFactors", like)
        values = values[..., None] if values.dim() < 2 else values
        try:
            values = values.expand(*values.shape[:-2], len(index), num_states)
        except RuntimeError:
            raise FieldError(
                f"PottsFactors: weight has shape {list(like.shape)}, but a number, [{len(index)}] or "
                f"[..., {len(index)}, {num_states}] is needed."
            ) from None
        # 0: nothing was read. 1 + k: all were k. The last: some differed.
        states = torch.arange(num_states, device=index.device)
        mixed = num_states + 1
        rows = torch.full((num_states + 2, num_states), mixed, device=index.device)
        rows[0] = 1 + states
        rows[1 + states, states] = 1 + states
        barred = values.new_full((*values.shape[:-1], 1), BARRED)
        super().__init__(index, rows, torch.cat([barred, values, torch.zeros_like(barred)], dim=-1))


def _like(scope: object, rows: list[list[int]]) -> Tensor:
    return torch.tensor(rows, device=scope.device if isinstance(scope, Tensor) else None)


def _scores(scope: object, final: list[float]) -> Tensor:
    return torch.tensor(final, device=scope.device if isinstance(scope, Tensor) else None)
