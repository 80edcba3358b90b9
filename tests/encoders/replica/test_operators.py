"""Sparse operators against dense matrices, attention against its definition."""

import pytest
import torch
from encoders.encoder_cases import SEEDS, random_batch, random_graphs

from accord.encoders.replica import _operators
from accord.encoders.replica._attention import attend
from accord.encoders.replica._linear import ReplicaLayerNorm, replica_linear
from accord.encoders.replica._operators import (
    arc_pattern,
    edge_ends,
    gcn_operator,
    mean_operator,
    multiply_in_order,
    silence_beta_warning,
)
from accord.graphs import GraphBatch

DTYPE = torch.float64


def adjacency(batch):
    dense = torch.zeros(batch.num_nodes, batch.num_nodes, dtype=DTYPE)
    dense[batch.topology.arcs.target, batch.topology.arcs.source] = 1
    return dense


def random_h(batch, *shape):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(batch.num_nodes, *shape, generator=generator, dtype=DTYPE).requires_grad_()


def test_gcn_operator():
    batch = random_batch()
    looped = adjacency(batch) + torch.eye(batch.num_nodes, dtype=DTYPE)
    scale = looped.sum(1).rsqrt()
    h = random_h(batch, 2, 3)
    wanted = torch.einsum("st,trc->src", scale[:, None] * looped * scale, h)
    torch.testing.assert_close(gcn_operator(batch, DTYPE)(h), wanted)
    assert torch.autograd.gradcheck(gcn_operator(batch, DTYPE), h)


def test_mean_operator():
    batch = random_batch()
    dense = adjacency(batch)
    h = random_h(batch, 2)
    torch.testing.assert_close(mean_operator(batch, DTYPE)(h), dense / dense.sum(1).clamp_min(1)[:, None] @ h)
    assert torch.autograd.gradcheck(mean_operator(batch, DTYPE), h)


def test_operators_are_built_once():
    batch = random_batch()
    assert gcn_operator(batch, DTYPE) is gcn_operator(batch, DTYPE)
    assert arc_pattern(batch, True) is not arc_pattern(batch, False)


def test_patterns_know_the_reverse_of_every_arc():
    for loops in (False, True):
        pattern = arc_pattern(random_batch(), loops)
        assert torch.equal(pattern.source[pattern.reverse].long(), pattern.target)
        assert torch.equal(pattern.target[pattern.reverse], pattern.source.long())


def test_edge_ends():
    batch = random_batch()
    h = random_h(batch, 2)
    source, target = edge_ends(h, batch)
    assert torch.equal(source, h[batch.topology.edge_index[0]]) and torch.equal(target, h[batch.topology.edge_index[1]])
    assert torch.autograd.gradcheck(lambda h: edge_ends(h, batch), h)


@pytest.mark.parametrize("block", [1, 2**20])
def test_attention_is_its_definition(block, monkeypatch):
    monkeypatch.setattr("accord.encoders.replica._attention.GRADIENT_BLOCK_ELEMENTS", block)
    batch = GraphBatch.collate(random_graphs()[:3])
    h, a, b = random_h(batch, 2, 2, 3), 3 * random_h(batch, 2, 2).detach(), random_h(batch, 2, 2).detach()
    a, b = a.requires_grad_(), b.requires_grad_()
    pattern = arc_pattern(batch, True)
    looped = adjacency(batch) + torch.eye(batch.num_nodes, dtype=DTYPE)
    scores = torch.nn.functional.leaky_relu(a[None] + b[:, None], 0.2)  # [targets, sources, replicas, heads]
    weights = scores.masked_fill(looped[..., None, None] == 0, -torch.inf).softmax(1)
    torch.testing.assert_close(attend(h, a, b, pattern), torch.einsum("tsrk,srkc->trkc", weights, h))
    assert torch.autograd.gradcheck(lambda *inputs: attend(*inputs, pattern), (h, a, b))


def test_attention_survives_huge_scores():
    batch = random_batch()
    h, a = random_h(batch, 1, 1, 2), 1e4 * random_h(batch, 1, 1)
    assert attend(h, a, -a, arc_pattern(batch, True)).isfinite().all()


def test_replica_linear():
    generator = torch.Generator().manual_seed(0)
    h, shared, weight, bias = (
        torch.randn(*shape, generator=generator, dtype=DTYPE).requires_grad_()
        for shape in ((6, 2, 3), (6, 3), (2, 3, 4), (2, 4))
    )
    torch.testing.assert_close(replica_linear(h, weight, bias), torch.einsum("nrc,rcd->nrd", h, weight) + bias)
    torch.testing.assert_close(replica_linear(shared, weight), torch.einsum("nc,rcd->nrd", shared, weight))
    assert torch.autograd.gradcheck(replica_linear, (h, weight, bias))
    assert torch.autograd.gradcheck(replica_linear, (shared, weight, bias))


def test_layer_norm_starts_as_torchs():
    h = random_h(random_batch(), len(SEEDS), 5)
    torch.testing.assert_close(ReplicaLayerNorm(5, SEEDS).double()(h), torch.nn.LayerNorm(5).double()(h))


def test_a_batch_on_a_gpu_gives_the_same():
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    from encoders.encoder_cases import ENCODER_CASES, FEATURES

    from accord.encoders import Noise

    batch = random_batch(dtype=DTYPE)
    for spec in ENCODER_CASES.values():
        encoder = spec.build(FEATURES, 3, SEEDS).double()
        noise = None if "dapter" in type(spec).__name__ or "UNet" in type(spec).__name__ else 4
        here = encoder(batch, None if noise is None else Noise(SEEDS, 4))
        there = encoder.cuda()(batch.to("cuda"), None if noise is None else Noise(torch.tensor(SEEDS).cuda(), 4))
        torch.testing.assert_close(there.cpu(), here)


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
