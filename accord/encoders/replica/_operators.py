"""Sparse operators over the arcs of a batch, applied to all replicas and channels at once."""

import math
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from accord._triton import suits
from accord.encoders.replica._pattern import Pattern, arc_pattern
from accord.encoders.replica.triton import sparse_product
from accord.graphs import GraphBatch
from accord.graphs._batch import Border, fill_ghosts

ORDERED_BLOCK_ELEMENTS = 2**26  # tensor elements in memory at a time when sums have a fixed order
HALF_PRECISION = (torch.bfloat16, torch.float16)  # torch has no sparse products in these on CPUs


@dataclass(frozen=True, eq=False)
class Operator:
    """A constant sparse matrix and its transpose; `halo` is that of the batch whose nodes it is over."""

    forward: Tensor
    transpose: Tensor
    halo: Border | None

    def __call__(self, h: Tensor) -> Tensor:
        """Apply to the node axis of `h` [nodes, ...]; the gradient uses the transpose."""
        applied: Tensor = _Product.apply(h, self)  # type: ignore[no-untyped-call]
        return fill_ghosts(applied, self.halo)


def gcn_operator(batch: GraphBatch, dtype: torch.dtype) -> Operator:
    """Symmetrically normalised adjacency with self-loops (Kipf and Welling 2017)."""

    def build() -> Operator:
        pattern = arc_pattern(batch, True)
        scale = batch.fill_ghosts(pattern.start.diff().to(dtype).rsqrt())
        matrix = adjacency(pattern, scale[pattern.target] * scale[pattern.source.long()])
        return Operator(matrix, matrix, batch.halo)

    return batch.cached(("gcn", dtype), build)


def mean_operator(batch: GraphBatch, dtype: torch.dtype) -> Operator:
    """Mean over a node's neighbours; zero for a node without neighbours."""

    def build() -> Operator:
        pattern = arc_pattern(batch, False)
        scale = pattern.start.diff().clamp_min(1).to(dtype).reciprocal()
        return Operator(
            adjacency(pattern, scale[pattern.target]),
            adjacency(pattern, scale[pattern.source.long()]),
            batch.halo,
        )

    return batch.cached(("mean", dtype), build)


def edge_ends(h: Tensor, batch: GraphBatch, edges: slice | None = None) -> tuple[Tensor, Tensor]:
    """Rows of `h` [nodes, ...] at the sources and at the targets of the edges: two tensors [edges, ...].

    Unlike the gradient of indexing, this one is a sparse product: fast, and deterministic on GPUs too.

    Args:
        h: [nodes, ...].
        batch: the graphs.
        edges: a range of edges, without gradient; None for all.
    """
    if edges is not None:
        assert not torch.is_grad_enabled()
        source, target = batch.topology.edge_index[:, edges]
        return h.index_select(0, source), h.index_select(0, target)
    source, target = batch.topology.edge_index
    back = batch.cached(("ends", h.dtype), lambda: (_selector(source, batch, h), _selector(target, batch, h)))
    ends: tuple[Tensor, Tensor] = _Ends.apply(h, source, target, back)  # type: ignore[no-untyped-call]
    return ends


def adjacency(pattern: Pattern, values: Tensor) -> Tensor:
    """The sparse matrix [targets, sources] with these values at the arcs."""
    return csr(pattern.start, pattern.source, values, (pattern.num_nodes, pattern.num_nodes))


def sum_incoming(pattern: Pattern, values: Tensor) -> Tensor:
    """Sum `values` [arcs, ...] over the arcs that enter each node: [nodes, ...]."""
    arcs = torch.arange(pattern.num_arcs, dtype=torch.int32, device=values.device)
    ones = torch.ones(pattern.num_arcs, dtype=values.dtype, device=values.device)
    return multiply(csr(pattern.start, arcs, ones, (pattern.num_nodes, pattern.num_arcs)), values)


def csr(start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix of compressed rows."""
    silence_beta_warning()
    return torch.sparse_csr_tensor(start, column, values, shape, check_invariants=False)


def multiply(matrix: Tensor, h: Tensor) -> Tensor:
    """A sparse matrix times `h` [columns, ...], in the precision of `h`; for use inside autograd functions."""
    columns = h.reshape(len(h), math.prod(h.shape[1:]))
    if suits(columns) and columns.numel() and matrix.shape[0]:
        return sparse_product(matrix, columns).view(matrix.shape[0], *h.shape[1:])
    if h.dtype in HALF_PRECISION and not h.is_cuda:
        columns = columns.float()
    if matrix.dtype != columns.dtype:  # in mixed precision
        matrix = matrix.to(columns.dtype)
    out = columns.new_empty(matrix.shape[0], columns.shape[1])
    if not out.numel() or not matrix.values().numel():
        out.zero_()
    elif h.is_cuda and torch.are_deterministic_algorithms_enabled():
        out = multiply_in_order(matrix, columns)
    else:
        torch.addmm(out, matrix, columns, beta=0.0, out=out)  # `@` would copy its result
    return out.to(h.dtype).view(matrix.shape[0], *h.shape[1:])


def multiply_in_order(matrix: Tensor, columns: Tensor) -> Tensor:
    """The same product with every row summed in the order of its entries, which makes it deterministic.

    cuSPARSE sums in the order in which threads finish. This version needs memory for [entries, columns], a block of
    columns at a time.
    """
    start, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    width = max(1, ORDERED_BLOCK_ELEMENTS // max(1, len(values)))
    blocks = [
        torch.segment_reduce(
            block.index_select(0, column) * values[:, None], "sum", offsets=start.to(torch.int64), axis=0
        )
        for block in columns.split(width, dim=1)
    ]
    return torch.cat(blocks, 1)


@cache
def silence_beta_warning() -> None:
    """Trigger and ignore torch's warning that CSR tensors are in beta, which comes once in a process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], torch.empty(0), (1, 1))


def _selector(node: Tensor, batch: GraphBatch, like: Tensor) -> Tensor:
    """Matrix [nodes, edges] that sums rows of edges at their `node`, one end of each edge."""
    start = torch.zeros(batch.num_nodes + 1, dtype=torch.int32, device=node.device)
    start[1:] = torch.bincount(node, minlength=batch.num_nodes).cumsum(0)
    order = node.argsort(stable=True).to(torch.int32)
    ones = torch.ones(len(node), dtype=like.dtype, device=node.device)
    return csr(start, order, ones, (batch.num_nodes, len(node)))


class _Product(Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, operator: Operator) -> Tensor:
        ctx.operator = operator
        return multiply(operator.forward, h)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return multiply(ctx.operator.transpose, gradient), None


class _Ends(Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, source: Tensor, target: Tensor, back: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        ctx.back = back
        return h.index_select(0, source), h.index_select(0, target)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, at_source: Tensor, at_target: Tensor) -> tuple[Tensor, None, None, None]:
        to_source, to_target = ctx.back
        return multiply(to_source, at_source).add_(multiply(to_target, at_target)), None, None, None
