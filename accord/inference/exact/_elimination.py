"""Exact inference by elimination, on trees of any size and on loopy graphs of small treewidth.

The cost grows with the product of the possible states in the largest clique, not in the whole graph.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import overload

import torch
from torch import Tensor

from accord.errors import InputTypeError
from accord.field import ChainField, PairwiseField
from accord.field._field import sum_dtype
from accord.field.factors import FactorField, FlatField, TableFactors, flatten, tabulate
from accord.inference._options import Semiring, check_semiring
from accord.inference._semiring import REDUCE
from accord.inference.chains import ChainBeliefs, solve_chains
from accord.inference.exact import _native
from accord.inference.exact._beliefs import ExactBeliefs
from accord.inference.exact._gradients import solve_with_gradients
from accord.inference.exact._layered import clique_tree, solve_layered
from accord.inference.exact._limits import Limits, check_limits
from accord.inference.exact._plain import make_buckets, solve_plain
from accord.inference.exact._solution import Solution, belief_starts, check_feasible

MAX_TABLE = 2**22  # entries of one clique's table: 32 MiB in float64, so that a few dozen fit in memory
MAX_TABLES = 2**6  # all tables together, as a multiple of the largest allowed


@overload
def eliminate_beliefs(
    field: PairwiseField | FactorField, semiring: Semiring = "sum", max_table: int = MAX_TABLE
) -> ExactBeliefs: ...


@overload
def eliminate_beliefs(field: ChainField, semiring: Semiring = "sum", max_table: int = MAX_TABLE) -> ChainBeliefs: ...


def eliminate_beliefs(
    field: PairwiseField | FactorField | ChainField, semiring: Semiring = "sum", max_table: int = MAX_TABLE
) -> ExactBeliefs | ChainBeliefs:
    """Exact beliefs by passing messages on a tree of cliques (Lauritzen and Spiegelhalter 1988).

    On CPUs by a compiled kernel; see docs/adr/0021-compiled-elimination.md. Differentiable; the gradient of
    `log_partition` is the marginals, or 1 at the labels of an optimum ("max"). Gradients of beliefs take elimination in
    torch, which is slower. Computed in float64 and returned in the precision of the field: at a node with many
    neighbours, float32 sums drift. Chains are solved by forward and backward passes in a kernel of their own.

    Args:
        field: the field to solve. Graphs of a batch and replicas are solved at once, with the conventions of
            `propagate`. A `ChainField` gives `ChainBeliefs`, with one row for each chain.
        semiring: "sum" for marginals and log Z, "max" for max-marginals and the optimum's score. `decode()` gives
            an exact optimum with either.
        max_table: most entries that one table may have: the possible states of a clique's nodes multiplied, times
            replicas. All tables of cliques larger than an edge together may have 64 times as many.

    Raises:
        InfeasibleError: a graph has no labelling without forbidden states or pairs.
        TooLargeError: the graph is too wide for `max_table`.
    """
    where = "eliminate_beliefs"
    check_semiring(semiring, where)
    if isinstance(field, ChainField):
        return solve_chains(field, semiring, where)
    flat, limits = _prepared(field, max_table, where)

    def compiled(flat: FlatField) -> Solution:
        return _native.solve(flat, semiring, limits)

    def plain(flat: FlatField) -> Solution:
        return (solve_layered if isinstance(field, PairwiseField) else solve_plain)(flat, semiring, limits)

    wants_gradient = torch.is_grad_enabled() and (flat.unary.requires_grad or flat.tables.requires_grad)
    if not _runs_compiled(flat):
        found = plain(flat)
    elif wants_gradient:
        found = solve_with_gradients(flat, semiring, compiled, plain)
    else:
        found = compiled(flat)
    check_feasible(found.totals, bool(field.replicas), where)
    return _shaped(field, flat, semiring, found)


def draw_labels(
    field: PairwiseField | FactorField,
    draw: Callable[[Tensor], Tensor],
    uniform: Callable[[tuple[int, ...]], Tensor],
    num_samples: int,
    max_table: int,
    compiled: bool,
    where: str,
) -> Tensor:
    """Independent labellings [num_samples, R, nodes], each node drawn given those around it, from the roots outwards.

    Args:
        field: the distribution.
        draw: from log-potentials [..., states] to states [...].
        uniform: random numbers of a shape, for the kernel, which draws itself.
        num_samples: how many.
        max_table: see `eliminate_beliefs`.
        compiled: whether the kernel may be used.
        where: the function that was called.
    """
    flat, limits = _prepared(field, max_table, where, wide=compiled)
    named = bool(field.replicas)
    if compiled and _runs_compiled(flat):
        numbers = uniform((len(flat.unary), flat.num_nodes, num_samples))
        sampled, totals = _native.sample(flat, numbers, limits)
        check_feasible(totals, named, where)
        return sampled[:, : flat.num_own].permute(2, 0, 1)
    if isinstance(field, PairwiseField):
        tree = clique_tree(flat, limits)
        collected = tree.collect(REDUCE["sum"])
        check_feasible(tree.totals(collected), named, where)
        return tree.backtrack(collected, draw, num_samples)
    buckets = make_buckets(flat, limits)
    tables, _, totals = buckets.collect(REDUCE["sum"])
    check_feasible(totals, named, where)
    return buckets.backtrack(tables, draw, num_samples)[..., : flat.num_own]


def _prepared(
    field: PairwiseField | FactorField, max_table: int, where: str, wide: bool = True
) -> tuple[FlatField, Limits]:
    """The field as arrays, in the precision of sums if `wide`, and the limits."""
    if not isinstance(field, (PairwiseField, FactorField)):
        raise InputTypeError(
            f"{where}: got a {type(field).__name__}, not a PairwiseField or FactorField. Build one first."
        )
    limits = check_limits(max_table, MAX_TABLES, where)
    field.check_changes(where)
    flat = flatten(field)
    dtype = sum_dtype(flat.unary.device) if wide else flat.unary.dtype
    return replace(flat, unary=flat.unary.to(dtype), tables=flat.tables.to(dtype)), limits


def _runs_compiled(flat: FlatField) -> bool:
    return flat.unary.device.type == "cpu" and _native.available()


def _shaped(field: PairwiseField | FactorField, flat: FlatField, semiring: str, found: Solution) -> ExactBeliefs:
    """Results in the shapes of the field."""
    dtype, count = field.node.dtype, len(found.unary)

    def shape(values: Tensor) -> Tensor:
        return values.reshape(*field.replicas, *values.shape[1:])

    if isinstance(field, PairwiseField):
        states = field.num_states
        node = found.unary.to(dtype).reshape(count, field.num_nodes, states)
        factors: list[Tensor | None] = [found.factors.to(dtype).reshape(count, field.num_edges, states, states)]
    else:
        node = _padded_nodes(field, found.unary[:, : int(flat.at[flat.num_own])].to(dtype))
        factors = _grouped(field, flat, found.factors.to(dtype))
    return ExactBeliefs(
        field,
        semiring,
        shape(node),
        tuple(None if group is None else shape(group) for group in factors),
        shape(found.totals.to(dtype)),
        shape(found.labels[:, : flat.num_own]),
    )


def _padded_nodes(field: FactorField, unary: Tensor) -> Tensor:
    """[R, nodes, states], -inf beyond a variable's own states."""
    exists = torch.arange(field.num_states, device=unary.device) < field.states[:, None]
    node = unary.new_full((len(unary), field.num_nodes, field.num_states), -torch.inf)
    node[:, exists] = unary
    return node


def _grouped(field: FactorField, flat: FlatField, factors: Tensor) -> list[Tensor | None]:
    """Beliefs of each group of tables [R, factors, states, ..., states], -inf beyond a variable's own states."""
    found: list[Tensor | None] = [None] * len(field.groups)
    # Rules became several groups of tables each; the others are kept as they are, in the same order.
    number_of: dict[int, int] = {}
    tables = [number for number, group in enumerate(field.groups) if isinstance(group, TableFactors)]
    for number, group in enumerate(tabulate(field).groups):
        if tables and group is field.groups[tables[0]]:
            number_of[number] = tables.pop(0)
    for number in number_of.values():
        group = field.groups[number]
        found[number] = factors.new_full((len(factors), group.num_factors, *group.shape), -torch.inf)
    starts = belief_starts(flat)
    first = 0
    for block in flat.blocks:
        last = first + len(block.factors)
        into = found[number_of[block.group]] if block.group in number_of else None
        if into is not None:
            values = factors[:, int(starts[first]) : int(starts[last])]
            place: tuple[slice | Tensor, ...] = (slice(None), block.factors, *map(slice, block.shape))
            into[place] = values.reshape(len(factors), last - first, *block.shape)
        first = last
    return found
