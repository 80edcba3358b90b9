"""Attention against its definition on dense matrices."""

import pytest
import torch
from encoders.encoder_cases import dense_adjacency, random_batch, random_graphs, random_h

from accord.encoders.replica._attention import attend
from accord.encoders.replica._pattern import arc_pattern
from accord.graphs import GraphBatch

DTYPE = torch.float64


@pytest.mark.parametrize("block", [1, 2**20])
def test_attention_equals_its_definition(block, monkeypatch):
    monkeypatch.setattr("accord.encoders.replica._attention.GRADIENT_BLOCK_ELEMENTS", block)
    batch = GraphBatch.collate(random_graphs()[:3])
    h, a, b = (
        random_h(batch, DTYPE, 2, 2, 3),
        3 * random_h(batch, DTYPE, 2, 2).detach(),
        random_h(batch, DTYPE, 2, 2).detach(),
    )
    a, b = a.requires_grad_(), b.requires_grad_()
    pattern = arc_pattern(batch, True)
    looped = dense_adjacency(batch, DTYPE) + torch.eye(batch.num_nodes, dtype=DTYPE)
    scores = torch.nn.functional.leaky_relu(a[None] + b[:, None], 0.2)  # [targets, sources, replicas, heads]
    weights = scores.masked_fill(looped[..., None, None] == 0, -torch.inf).softmax(1)
    torch.testing.assert_close(attend(h, a, b, pattern), torch.einsum("tsrk,srkc->trkc", weights, h))
    assert torch.autograd.gradcheck(lambda *inputs: attend(*inputs, pattern), (h, a, b))


def test_huge_scores_do_not_overflow():
    batch = random_batch()
    h, a = random_h(batch, DTYPE, 1, 1, 2), 1e4 * random_h(batch, DTYPE, 1, 1)
    assert attend(h, a, -a, arc_pattern(batch, True)).isfinite().all()
