"""Sparse operators over the arcs of a batch, applied to dense columns: all replicas and channels ride along."""

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
from accord.encoders.replica.triton._product import product
from accord.graphs import GraphBatch

ORDERED_BLOCK = 2**26  # numbers held at a time where sums must come in order
HALF = (torch.bfloat16, torch.float16)  # CPUs have no sparse products in half precision


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of an adjacency are: one for each arc, sorted by target, then source.

    The pattern is symmetric, so the transpose of a matrix on it is a permutation of the values.
    """

    start: Tensor  # [nodes + 1], int32: node n's incoming arcs are start[n] to start[n + 1]
    source: Tensor  # [arcs], int32
    target: Tensor  # [arcs]
    reverse: Tensor  # [arcs]: the arc that runs the other way; a self-loop is its own

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.start) - 1

    @property
    def num_arcs(self) -> int:
        """How many arcs there are, self-loops included where they were asked for."""
        return len(self.source)

    def matrix(self, values: Tensor) -> Tensor:
        """The adjacency [targets, sources] with these values."""
        return csr(self.start, self.source, values, (self.num_nodes, self.num_nodes))

    def sum_incoming(self, values: Tensor) -> Tensor:
        """Sum rows of `values` [arcs, columns] over the arcs that enter each node: [nodes, columns]."""
        arcs = torch.arange(self.num_arcs, dtype=torch.int32, device=values.device)
        ones = torch.ones(self.num_arcs, dtype=values.dtype, device=values.device)
        return multiply(csr(self.start, arcs, ones, (self.num_nodes, self.num_arcs)), values)


@dataclass(frozen=True, eq=False)
class Operator:
    """A constant sparse matrix and its transpose."""

    forward: Tensor
    transpose: Tensor

    def __call__(self, h: Tensor) -> Tensor:
        """Apply to the node axis of `h` [nodes, ...]; gradients go through the transpose."""
        product: Tensor = _Product.apply(h, self)  # type: ignore[no-untyped-call]
        return product


def arc_pattern(batch: GraphBatch, self_loops: bool) -> Pattern:
    """The arcs of a batch in compressed form."""
    return batch.cached(("pattern", self_loops), lambda: _pattern(batch, self_loops))


def gcn_operator(batch: GraphBatch, dtype: torch.dtype) -> Operator:
    """Adjacency with self-loops between square roots of inverse degrees (Kipf and Welling 2017)."""

    def build() -> Operator:
        pattern = arc_pattern(batch, True)
        scale = pattern.start.diff().to(dtype).rsqrt()
        matrix = pattern.matrix(scale[pattern.target] * scale[pattern.source.long()])
        return Operator(matrix, matrix)

    return batch.cached(("gcn", dtype), build)


def mean_operator(batch: GraphBatch, dtype: torch.dtype) -> Operator:
    """Mean over a node's neighbours; zero for a node without any."""

    def build() -> Operator:
        pattern = arc_pattern(batch, False)
        scale = pattern.start.diff().clamp_min(1).to(dtype).reciprocal()
        return Operator(
            pattern.matrix(scale[pattern.target]),
            pattern.matrix(scale[pattern.source.long()]),
        )

    return batch.cached(("mean", dtype), build)


def edge_ends(h: Tensor, batch: GraphBatch, edges: slice | None = None) -> tuple[Tensor, Tensor]:
    """Rows of `h` [nodes, ...] at the sources and at the targets of the edges: two tensors [edges, ...].

    Unlike indexing, the gradient is a sparse product: fast, and the same numbers in every run on a GPU too. A range of
    edges can be asked for where no gradient is.
    """
    if edges is not None:
        assert not torch.is_grad_enabled()
        source, target = batch.topology.edge_index[:, edges]
        return h.index_select(0, source), h.index_select(0, target)
    source, target = batch.topology.edge_index
    back = batch.cached(("ends", h.dtype), lambda: (_selector(source, batch, h), _selector(target, batch, h)))
    ends: tuple[Tensor, Tensor] = _Ends.apply(h, source, target, back)  # type: ignore[no-untyped-call]
    return ends


def csr(start: Tensor, column: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse matrix from compressed rows."""
    silence_beta_warning()
    return torch.sparse_csr_tensor(start, column, values, shape, check_invariants=False)


def multiply(matrix: Tensor, h: Tensor) -> Tensor:
    """Sparse times dense [rows, ...] in the precision of `h`; for use inside autograd functions."""
    columns = h.reshape(len(h), math.prod(h.shape[1:]))
    if suits(columns) and columns.numel() and matrix.shape[0]:
        return product(matrix, columns).view(matrix.shape[0], *h.shape[1:])
    if h.dtype in HALF and not h.is_cuda:
        columns = columns.float()
    if matrix.dtype != columns.dtype:  # under mixed precision
        matrix = matrix.to(columns.dtype)
    out = columns.new_empty(matrix.shape[0], columns.shape[1])
    if not out.numel() or not matrix.values().numel():
        out.zero_()
    elif h.is_cuda and torch.are_deterministic_algorithms_enabled():
        out = multiply_in_order(matrix, columns)
    else:
        torch.addmm(out, matrix, columns, beta=0.0, out=out)  # plain `@` copies its result
    return out.to(h.dtype).view(matrix.shape[0], *h.shape[1:])


def multiply_in_order(matrix: Tensor, columns: Tensor) -> Tensor:
    """The same product with every row summed in the order of its entries: the same bits in every run.

    cuSPARSE sums in whatever order its threads finish. This way holds [entries, columns] in memory, a block at a time.
    """
    start, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    width = max(1, ORDERED_BLOCK // max(1, len(values)))
    blocks = [
        torch.segment_reduce(
            block.index_select(0, column) * values[:, None], "sum", offsets=start.to(torch.int64), axis=0
        )
        for block in columns.split(width, dim=1)
    ]
    return torch.cat(blocks, 1)


@cache
def silence_beta_warning() -> None:
    """Torch says once in a process that CSR tensors are in beta; let it say so to nobody."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], torch.empty(0), (1, 1))


def _pattern(batch: GraphBatch, self_loops: bool) -> Pattern:
    arcs, nodes = batch.topology.arcs, batch.num_nodes
    source, target = arcs.source, arcs.target
    if self_loops:
        loops = torch.arange(nodes, device=source.device)
        source, target = torch.cat([source, loops]), torch.cat([target, loops])
    key, order = (target * nodes + source).sort()
    # Sorting by (source, target) lists the arcs in the order of their reverses.
    reverse = torch.empty_like(order)
    reverse[(source * nodes + target)[order].argsort()] = torch.arange(len(order), device=order.device)
    start = torch.zeros(nodes + 1, dtype=torch.int32, device=source.device)
    start[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
    return Pattern(start, source[order].to(torch.int32), target[order], reverse)


def _selector(node: Tensor, batch: GraphBatch, like: Tensor) -> Tensor:
    """Matrix [nodes, edges] that adds up what edges hand to their `node`."""
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
