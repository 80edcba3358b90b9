"""The input of a layer: hidden representations, or features, which all replicas share and which are often sparse.

In bags of words about one percent of the entries is not zero. For them the linear map is one sparse product for all
replicas, and input dropout, which differs between replicas, is drawn for the non-zeros only.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from accord.encoders.replica._linear import replica_linear, replica_linear_onto, to_autocast
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import Operator, csr, multiply
from accord.graphs import GraphBatch

SPARSE_BELOW = 0.1  # fraction of non-zeros below which a sparse product is faster than a dense one
MIN_SPARSE_FEATURES = 128  # with fewer features the overhead of a sparse product is larger than its gain


class Signal(ABC):
    """The input of a layer. It can be mapped linearly, with or without a sparse operator over the nodes."""

    @abstractmethod
    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """signal weight + bias: [nodes, replicas, outputs]."""

    def linear_onto(self, base: Tensor, weight: Tensor) -> Tensor:
        """base + signal weight; `base` may be overwritten."""
        return base + self.linear(weight)

    @abstractmethod
    def aggregated_linear(self, operator: Operator, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """operator(signal) weight + bias, in the cheaper order."""


@dataclass(frozen=True, eq=False)
class Hidden(Signal):
    """Representations [nodes, replicas, channels] from an earlier layer."""

    h: Tensor

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """One product for each replica."""
        return replica_linear(self.h, weight, bias)

    def linear_onto(self, base: Tensor, weight: Tensor) -> Tensor:
        """The products are added to `base` in place."""
        return replica_linear_onto(base, self.h, weight)

    def aggregated_linear(self, operator: Operator, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Aggregate before or after the map, whichever has fewer channels."""
        if weight.shape[1] <= weight.shape[2]:
            return replica_linear(operator(self.h), weight, bias)
        return _plus(operator(replica_linear(self.h, weight)), bias)


@dataclass(frozen=True, eq=False)
class Features(Signal):
    """The features of a batch; dropout removes different elements for each replica."""

    batch: GraphBatch
    noise: Noise | None = None
    dropout: float = 0.0
    layer: int = 0  # number of this dropout in the model

    @property
    def drops(self) -> bool:
        """Whether dropout makes the features of replicas differ."""
        return self.noise is not None and self.dropout > 0.0

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """One product for all replicas if features are sparse or nothing is dropped."""
        replicas = len(weight)
        if has_sparse_features(self.batch):
            blocks, values = self._blocks(replicas), self._values(replicas)
            weight = to_autocast(weight)
            product: Tensor = _SparseLinear.apply(blocks, values, weight)  # type: ignore[no-untyped-call]
            return _plus(product, bias)
        if self.noise is None or not self.drops:
            return replica_linear(self.batch.x, weight, bias)
        each = self.batch.x[:, None, :].expand(-1, replicas, -1)
        return replica_linear(self.noise.dropout(each, self.dropout, self.layer), weight, bias)

    def linear_onto(self, base: Tensor, weight: Tensor) -> Tensor:
        """Dense features without dropout are mapped and added to `base` in place."""
        if self.drops or has_sparse_features(self.batch):
            return base + self.linear(weight)
        return replica_linear_onto(base, self.batch.x, weight)

    def aggregated_linear(self, operator: Operator, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Dense features without dropout are aggregated once for all replicas and steps; others after the map."""
        if self.drops or has_sparse_features(self.batch):
            return _plus(operator(self.linear(weight)), bias)
        x = self.batch.x
        # The batch keeps the operator alive, so its identity is a valid key.
        aggregated = operator(x) if x.requires_grad else self.batch.cached(("x", operator), lambda: operator(x))
        return replica_linear(aggregated, weight, bias)

    def _blocks(self, replicas: int) -> "_SparseFeatures":
        return self.batch.cached(("sparse x", replicas), lambda: _sparse_features(self.batch, replicas))

    def _values(self, replicas: int) -> Tensor:
        blocks = self._blocks(replicas)
        if self.noise is None or not self.drops:
            return blocks.values
        keep, scale = self.noise.keep_at(blocks.row, blocks.column, self.batch.num_features, self.dropout, self.layer)
        return (blocks.values * keep.view(-1)[blocks.element]).mul_(scale)


def _plus(h: Tensor, bias: Tensor | None) -> Tensor:
    return h if bias is None else h + bias.to(h.dtype)


def has_sparse_features(batch: GraphBatch) -> bool:
    """Whether sparse products with x are faster than dense ones; on a part of a graph, `agree_on_sparsity` decides."""
    if batch.num_features < MIN_SPARSE_FEATURES or batch.x.requires_grad or batch.num_nodes == 0:
        return False
    return batch.cached("sparse?", lambda: int(torch.count_nonzero(batch.x)) < SPARSE_BELOW * batch.x.numel())


def agree_on_sparsity(batch: GraphBatch, nonzeros: int, entries: int) -> None:
    """Decide by the features of a whole graph, of which the batch is a part.

    Sparse features are mapped before they are summed over neighbours, dense ones after. Processes that decided by
    themselves could exchange different tensors.
    """
    batch.cached("sparse?", lambda: nonzeros < SPARSE_BELOW * entries)


@dataclass(frozen=True, eq=False)
class _SparseFeatures:
    """A sparse matrix [nodes x replicas, replicas x features] with a copy of x for each replica.

    Its product with the weights [replicas x features, outputs] has the layout [nodes, replicas, outputs].
    """

    row: Tensor  # [non-zeros]: of x
    column: Tensor  # [non-zeros]: of x
    element: Tensor  # [entries]: flat index of each entry's (non-zero, replica)
    values: Tensor  # [entries]
    start: Tensor
    index: Tensor
    start_transposed: Tensor
    index_transposed: Tensor
    order_transposed: Tensor  # [entries]
    shape: tuple[int, int]

    def matrix(self, values: Tensor) -> Tensor:
        return csr(self.start, self.index, values, self.shape)

    def transposed(self, values: Tensor) -> Tensor:
        rows, columns = self.shape
        return csr(self.start_transposed, self.index_transposed, values[self.order_transposed], (columns, rows))


def _sparse_features(batch: GraphBatch, replicas: int) -> _SparseFeatures:
    x = batch.x
    row, column = x.nonzero(as_tuple=True)
    replica = torch.arange(replicas, device=x.device)
    block_row = (row[:, None] * replicas + replica).flatten()
    block_column = (replica * batch.num_features + column[:, None]).flatten()
    shape = (batch.num_nodes * replicas, replicas * batch.num_features)
    order = block_row.argsort(stable=True)
    block_row, block_column = block_row[order], block_column[order]
    transposed = block_column.argsort(stable=True)
    return _SparseFeatures(
        row=row,
        column=column,
        element=order,
        values=x[row, column].repeat_interleave(replicas)[order],
        start=_starts(block_row, shape[0]),
        index=block_column.to(torch.int32),
        start_transposed=_starts(block_column, shape[1]),
        index_transposed=block_row[transposed].to(torch.int32),
        order_transposed=transposed,
        shape=shape,
    )


def _starts(sorted_rows: Tensor, count: int) -> Tensor:
    start = torch.zeros(count + 1, dtype=torch.int32, device=sorted_rows.device)
    start[1:] = torch.bincount(sorted_rows, minlength=count).cumsum(0)
    return start


class _SparseLinear(Function):
    @staticmethod
    def forward(ctx: Any, features: _SparseFeatures, values: Tensor, weight: Tensor) -> Tensor:
        ctx.features = features
        ctx.save_for_backward(values)
        ctx.weight_shape = weight.shape
        replicas, _, outputs = weight.shape
        product = multiply(features.matrix(values), weight.reshape(-1, outputs))
        return product.view(-1, replicas, outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        (values,) = ctx.saved_tensors
        columns = gradient.reshape(-1, gradient.shape[-1])
        return None, None, multiply(ctx.features.transposed(values), columns).view(ctx.weight_shape)
