"""What elimination finds for a flat field."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import InfeasibleError
from accord.field.factors import FlatField


@dataclass(frozen=True, eq=False)
class Solution:
    """Results of all replicas, as flat as the field. Values are logs."""

    totals: Tensor  # [R, graphs]: log Z ("sum"), score of the optimum ("max")
    unary: Tensor  # [R, states of all variables]: beliefs
    factors: Tensor  # [R, entries]: beliefs of the factors, one table after another
    labels: Tensor  # [R, nodes]: an optimum


def table_sizes(flat: FlatField) -> Tensor:
    """Entries of each factor's table [factors]."""
    sizes = torch.ones_like(flat.table_at)
    orders = flat.scope_at.diff()
    for order in orders.unique().tolist():
        rows = (orders == order).nonzero().flatten()
        scope = flat.scope[flat.scope_at[rows, None] + torch.arange(order, device=rows.device)]
        sizes[rows] = flat.states[scope].prod(1)
    return sizes


def belief_starts(flat: FlatField) -> Tensor:
    """Where each factor's beliefs begin in `Solution.factors`, and where the last ones end: [factors + 1]."""
    sizes = table_sizes(flat)
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])


def check_feasible(totals: Tensor, named: bool, where: str) -> None:
    """Raise InfeasibleError if a graph has no labelling.

    Args:
        totals: [R, graphs].
        named: whether the message says which replica.
        where: the function that was called.
    """
    barred = (totals.detach() == -torch.inf).nonzero()
    if len(barred):
        replica, graph = barred[0].tolist()
        which = f"graph {graph}" + (f" of replica {replica}" if named else "")
        raise InfeasibleError(
            f"{where}: {which} has no labelling without forbidden states or pairs. "
            "Relax a clamped label, a forbidden state or a forbidden pair there."
        )
