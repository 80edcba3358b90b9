"""Gradients of compiled elimination.

The gradient of log Z is the marginals, which the kernel computes anyway. Gradients of beliefs come from elimination in
torch, which runs only when they are asked for.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from accord.field.factors import FlatField
from accord.inference.exact._solution import Solution, belief_starts, table_sizes

Solver = Callable[[FlatField], Solution]


def solve_with_gradients(flat: FlatField, semiring: str, compiled: Solver, plain: Solver) -> Solution:
    """What `compiled` finds, with gradients. `plain` is the same in torch operations."""
    found = _Elimination.apply(flat.unary, flat.tables, flat, semiring, compiled, plain)  # type: ignore[no-untyped-call]
    return Solution(*found)


class _Elimination(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, unary: Tensor, tables: Tensor, flat: FlatField, semiring: str, compiled: Solver, plain: Solver
    ) -> tuple[Tensor, ...]:
        found = compiled(flat)
        ctx.flat, ctx.semiring, ctx.plain = flat, semiring, plain
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(found.labels)
        ctx.save_for_backward(unary, tables, found.unary, found.factors, found.labels)
        return found.totals, found.unary, found.factors, found.labels

    @staticmethod
    def backward(ctx: Any, totals: Tensor | None, unary: Tensor | None, factors: Tensor | None, _: None) -> Any:
        given_unary, given_tables, node, factor, labels = ctx.saved_tensors
        rest = (None, None, None, None)
        if unary is not None or factors is not None:
            return (*_replay(ctx, given_unary, given_tables, (totals, unary, factors)), *rest)
        if totals is None:
            return (None, None, *rest)
        if ctx.semiring == "max":
            node, factor = _indicators(ctx.flat, labels)
        else:
            node, factor = node.exp(), factor.exp()
        return (*_shares(ctx.flat, totals, node, factor), *rest)


def _replay(ctx: Any, unary: Tensor, tables: Tensor, arrived: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
    """Gradients of potentials by elimination in torch, given those of totals, unary and factor beliefs."""
    again = torch.is_grad_enabled()  # gradients of gradients are asked for
    with torch.enable_grad():
        inputs = [
            given if again and given.requires_grad else given.detach().requires_grad_() for given in (unary, tables)
        ]
        found = ctx.plain(replace(ctx.flat, unary=inputs[0], tables=inputs[1]))
        pairs = zip((found.totals, found.unary, found.factors), arrived, strict=True)
        outputs, gradients = zip(*(pair for pair in pairs if pair[1] is not None), strict=True)
        return torch.autograd.grad(outputs, inputs, gradients, create_graph=again, materialize_grads=True)


def _shares(flat: FlatField, totals: Tensor, node: Tensor, factor: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of potentials from those of log Z [R, graphs] and probabilities of states."""
    sizes, orders = table_sizes(flat), flat.scope_at[:-1]
    node = totals[:, flat.graph.repeat_interleave(flat.states)] * node
    factor = totals[:, flat.graph[flat.scope[orders]].repeat_interleave(sizes)] * factor
    if len(flat.tables) < len(factor):
        factor = factor.sum(0, keepdim=True)
    starts = belief_starts(flat)[:-1]
    if torch.equal(starts, flat.table_at) and factor.shape == flat.tables.shape:
        return node, factor
    place = torch.arange(factor.shape[1], device=factor.device) + (flat.table_at - starts).repeat_interleave(sizes)
    return node, torch.zeros_like(flat.tables, dtype=factor.dtype).index_add(1, place, factor)


def _indicators(flat: FlatField, labels: Tensor) -> tuple[Tensor, Tensor]:
    """1 at the states and table entries of a labelling [R, nodes], otherwise 0."""
    node = flat.unary.new_zeros(flat.unary.shape).scatter_(1, flat.at[:-1] + labels, 1.0)
    starts = belief_starts(flat)
    factor = node.new_zeros(len(node), int(starts[-1]))
    orders = flat.scope_at.diff()
    for order in orders.unique().tolist():
        rows = (orders == order).nonzero().flatten()
        scope = flat.scope[flat.scope_at[rows, None] + torch.arange(order, device=rows.device)]
        place = torch.zeros_like(labels[:, scope[:, 0]])
        for axis in range(order):
            place = place * flat.states[scope[:, axis]] + labels[:, scope[:, axis]]
        factor.scatter_(1, starts[rows] + place, 1.0)
    return node, factor
