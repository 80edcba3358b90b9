"""Sparse operators against dense matrices."""

import torch
from encoders.encoder_cases import dense_adjacency, random_batch, random_h

from accord.encoders.replica import _operators
from accord.encoders.replica._operators import (
    edge_ends,
    gcn_operator,
    mean_operator,
    multiply_in_order,
    silence_beta_warning,
    sum_incoming,
)
from accord.encoders.replica._pattern import arc_pattern

DTYPE = torch.float64


def test_gcn_operator():
    batch = random_batch()
    looped = dense_adjacency(batch, DTYPE) + torch.eye(batch.num_nodes, dtype=DTYPE)
    scale = looped.sum(1).rsqrt()
    h = random_h(batch, DTYPE, 2, 3)
    wanted = torch.einsum("st,trc->src", scale[:, None] * looped * scale, h)
    torch.testing.assert_close(gcn_operator(batch, DTYPE)(h), wanted)
    assert torch.autograd.gradcheck(gcn_operator(batch, DTYPE), h)


def test_mean_operator():
    batch = random_batch()
    dense = dense_adjacency(batch, DTYPE)
    h = random_h(batch, DTYPE, 2)
    torch.testing.assert_close(mean_operator(batch, DTYPE)(h), dense / dense.sum(1).clamp_min(1)[:, None] @ h)
    assert torch.autograd.gradcheck(mean_operator(batch, DTYPE), h)


def test_operators_are_built_once():
    batch = random_batch()
    assert gcn_operator(batch, DTYPE) is gcn_operator(batch, DTYPE)
    assert mean_operator(batch, DTYPE) is not mean_operator(batch, torch.float32)


def test_edge_ends():
    batch = random_batch()
    h = random_h(batch, DTYPE, 2)
    source, target = edge_ends(h, batch)
    assert torch.equal(source, h[batch.topology.edge_index[0]]) and torch.equal(target, h[batch.topology.edge_index[1]])
    assert torch.autograd.gradcheck(lambda h: edge_ends(h, batch), h)


def test_products_in_order_equal_ordinary_ones(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(7, 5, generator=generator) * (torch.rand(7, 5, generator=generator) < 0.4)
    dense[3] = 0  # a row without entries
    columns = torch.randn(5, 6, generator=generator)
    silence_beta_warning()
    matrix = dense.to_sparse_csr()
    torch.testing.assert_close(multiply_in_order(matrix, columns), dense @ columns)
    monkeypatch.setattr(_operators, "ORDERED_BLOCK_ELEMENTS", 20)
    torch.testing.assert_close(multiply_in_order(matrix, columns), dense @ columns)


def test_sums_over_incoming_arcs():
    batch = random_batch()
    pattern = arc_pattern(batch, False)
    values = torch.randn(pattern.num_arcs, 3, generator=torch.Generator().manual_seed(1), dtype=DTYPE)
    wanted = torch.zeros(batch.num_nodes, 3, dtype=DTYPE).index_add(0, pattern.target, values)
    torch.testing.assert_close(sum_incoming(pattern, values), wanted)
