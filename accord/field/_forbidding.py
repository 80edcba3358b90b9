"""Which pairs of states `forbid` rules out, and on which edges."""

import operator
from collections.abc import Sequence

import torch
from torch import Tensor

from accord.errors import FieldError, InputTypeError
from accord.graphs._checks import check_integer

Pairs = Tensor | Sequence[tuple[int, int]]


def barred_pairs(pairs: Pairs, symmetric: bool, num_states: int, where: str) -> Tensor | None:
    """True for what is ruled out [states of source, states of target]; None if nothing is listed.

    Args:
        pairs: [pairs, 2] states (a, b).
        symmetric: (a, b) also rules out (b, a).
        num_states: how many states there are.
        where: the function that was called.
    """
    if not isinstance(symmetric, bool):
        raise InputTypeError(f"{where}: symmetric is a {type(symmetric).__name__}. Give True or False.")
    listed = _as_pairs(pairs, where)
    if listed.numel() == 0:
        return None
    listed = check_integer(listed, "pairs", where)
    if listed.dim() != 2 or listed.shape[1] != 2:
        raise FieldError(
            f"{where}: pairs have shape {list(listed.shape)}, but [pairs, 2] is needed. "
            "Give one row (state, state) for each pair."
        )
    if int(listed.min()) < 0 or int(listed.max()) >= num_states:
        raise FieldError(
            f"{where}: pairs name states {int(listed.min())} to {int(listed.max())}; "
            f"the field has states 0 to {num_states - 1}. Number the states from 0."
        )
    barred = torch.zeros(num_states, num_states, dtype=torch.bool, device=listed.device)
    barred[listed[:, 0], listed[:, 1]] = True
    return barred | barred.t() if symmetric else barred


def chosen_edges(edges: Tensor, num_edges: int, where: str) -> Tensor:
    """Mask [edges] of columns of edge_index."""
    columns = check_integer(edges, "edges", where)
    if columns.numel() and (int(columns.min()) < 0 or int(columns.max()) >= num_edges):
        raise FieldError(
            f"{where}: edges run from {int(columns.min())} to {int(columns.max())}, but the columns of edge_index "
            f"are 0 to {num_edges - 1}. Leave edges out to mean all of them."
        )
    return torch.zeros(num_edges, dtype=torch.bool, device=columns.device).index_fill_(0, columns.flatten(), True)


def _as_pairs(pairs: Pairs, where: str) -> Tensor:
    if isinstance(pairs, Tensor):
        return pairs
    try:
        return torch.tensor([[operator.index(state) for state in pair] for pair in pairs])
    except (TypeError, ValueError, RuntimeError):
        raise InputTypeError(
            f"{where}: pairs is a {type(pairs).__name__} that does not hold pairs of states. "
            "Give a list of (state, state) or a [pairs, 2] tensor."
        ) from None
