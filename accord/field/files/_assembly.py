"""The tables of a model file as a field of the narrowest kind that holds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from accord.errors import AccordError, FieldError
from accord.field._field import PairwiseField
from accord.field.factors import FactorField, FactorGroup, TableFactors
from accord.graphs._checks import check_room

COPIES = 3  # of all potentials, that are held at once while a field is built

Block = tuple[np.ndarray, np.ndarray]  # scope [factors, order] and log-potentials [factors, states, ..., states]


@dataclass(frozen=True, eq=False)
class Tables:
    """Factors in the order of the file; tables are stored by rows."""

    states: np.ndarray  # [variables]: how many each has
    scope_at: np.ndarray  # [factors + 1]: the variables of factor f are scope[scope_at[f] : scope_at[f + 1]]
    scope: np.ndarray  # [variables of all factors]
    table_at: np.ndarray  # [factors]: where the table begins in `values`
    values: np.ndarray  # not negative

    @property
    def order(self) -> np.ndarray:
        """[factors]: how many variables each has."""
        return np.diff(self.scope_at)

    def blocks(self, order: int) -> Iterator[Block]:
        """Factors of an order of at least 1, grouped by the states of their variables."""
        factors = np.flatnonzero(self.order == order)
        if not len(factors):
            return
        scope = self.scope[self.scope_at[factors][:, None] + np.arange(order)]
        shapes, which = np.unique(self.states[scope], axis=0, return_inverse=True)
        which = which.reshape(-1)
        parts = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for shape, chosen in zip(shapes.tolist(), parts, strict=True):
            size = int(np.prod(shape))
            values = self.values[self.table_at[factors[chosen]][:, None] + np.arange(size)]
            with np.errstate(divide="ignore"):
                yield scope[chosen], np.log(values).reshape(-1, *shape)


def sizes_of(states: np.ndarray, scope_at: np.ndarray, scope: np.ndarray) -> np.ndarray:
    """[factors]: how many entries each table has, as floats, which hold any size."""
    owner = np.repeat(np.arange(len(scope_at) - 1), np.diff(scope_at))
    sizes = np.ones(len(scope_at) - 1)
    with np.errstate(over="ignore"):
        np.multiply.at(sizes, owner, states[scope].astype(np.float64))
    return sizes


def first_repeated(scope_at: np.ndarray, scope: np.ndarray) -> int | None:
    """The first factor that names a variable twice."""
    owner = np.repeat(np.arange(len(scope_at) - 1), np.diff(scope_at))
    order = np.lexsort((scope, owner))
    same = (np.diff(owner[order]) == 0) & (np.diff(scope[order]) == 0)
    return int(owner[order][1:][same][0]) if same.any() else None


def to_field(tables: Tables, path: Path) -> PairwiseField | FactorField:
    """The field of a file's tables: PairwiseField, or ragged, or FactorField.

    Tables of one variable are added to its potentials, those of the same two variables to each other, and constants to
    the potentials of variable 0.
    """
    states = tables.states
    check_states(states, path)
    try:
        return _assembled(tables, states)
    except AccordError as error:
        raise type(error)(f"{path}: {error}") from error


def check_states(states: np.ndarray, path: Path) -> None:
    """Refuse a model without variables, or whose variables have too many states for the memory."""
    if not len(states):
        raise FieldError(f"{path}: has no variables. A field needs at least one.")
    needed = COPIES * 8.0 * len(states) * float(states.max())
    check_room(str(path), f"{len(states)} variables of up to {states.max()} states", int(needed), torch.device("cpu"))


def _assembled(tables: Tables, states: np.ndarray) -> PairwiseField | FactorField:
    width, orders = int(states.max()), tables.order
    node = np.where(np.arange(width) < states[:, None], 0.0, -np.inf)
    with np.errstate(divide="ignore"):
        node[0] += np.log(tables.values[tables.table_at[orders == 0]]).sum()
    for scope, values in tables.blocks(1):
        np.add.at(node[:, : values.shape[1]], scope[:, 0], values)
    pairs = _merged_pairs(tables)
    if len(orders) and orders.max() > 2:
        blocks = [*pairs, *(block for order in np.unique(orders[orders > 2]) for block in tables.blocks(int(order)))]
        groups: list[FactorGroup] = [TableFactors(torch.from_numpy(s), torch.from_numpy(v)) for s, v in blocks]
        return FactorField(torch.from_numpy(node), groups, num_states=torch.from_numpy(states))
    edge_index = torch.from_numpy(np.concatenate([scope for scope, _ in pairs]) if pairs else np.empty((0, 2), int)).t()
    if int(states.min()) == width:
        edge = pairs[0][1] if pairs else np.empty((0, width, width))
        return PairwiseField(edge_index.contiguous(), torch.from_numpy(node), torch.from_numpy(edge))
    rows = [torch.from_numpy(row[:count].copy()) for row, count in zip(node, states.tolist(), strict=True)]
    edges: list[Tensor] = [table for _, values in pairs for table in torch.from_numpy(values).unbind(0)]
    return PairwiseField.ragged(edge_index.contiguous(), rows, edges)


def _merged_pairs(tables: Tables) -> list[Block]:
    """Tables of two variables, from the lower to the higher, one for each pair; grouped by their states."""
    found: dict[tuple[int, ...], list[Block]] = {}
    for scope, values in tables.blocks(2):
        down = scope[:, 0] > scope[:, 1]
        for chosen, ends, own in ((~down, scope, values), (down, scope[:, ::-1], values.swapaxes(1, 2))):
            if chosen.any():
                found.setdefault(own.shape[1:], []).append((ends[chosen], own[chosen]))
    merged = []
    for shape, blocks in sorted(found.items()):
        scope, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        distinct, which = np.unique(scope, axis=0, return_inverse=True)
        if len(distinct) == len(scope):
            total = np.empty_like(values)
            total[which.reshape(-1)] = values
        else:
            total = np.zeros((len(distinct), *shape))
            np.add.at(total, which.reshape(-1), values)
        merged.append((distinct, np.ascontiguousarray(total)))
    return merged
