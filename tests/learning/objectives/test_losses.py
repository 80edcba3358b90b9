"""Losses against torch's own, with missing labels and replicas."""

import torch
from torch.nn import functional
from torch.testing import assert_close

from accord.graphs import topology
from accord.learning.objectives import consistency_penalty, edge_loss, node_loss

GENERATOR = torch.Generator().manual_seed(0)
GRAPH = topology(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), 5)
NODE = torch.randn(2, 5, 3, generator=GENERATOR)
EDGE = torch.randn(2, 4, 3, 3, generator=GENERATOR)
TARGETS = torch.tensor([[0, 2, -1, 1, 1], [1, 1, 0, 2, -1]])


def test_node_loss_is_cross_entropy_over_labelled_nodes():
    for smoothing in (0.0, 0.1):
        loss = node_loss(NODE, TARGETS, smoothing)
        for r in range(2):
            expected = functional.cross_entropy(NODE[r], TARGETS[r], ignore_index=-1, label_smoothing=smoothing)
            assert_close(loss[r], expected)


def test_edge_loss_counts_edges_with_both_ends_labelled():
    loss = edge_loss(EDGE, TARGETS, GRAPH)
    for r in range(2):
        known = [
            (e, int(TARGETS[r, s]) * 3 + int(TARGETS[r, t]))
            for e, (s, t) in enumerate(GRAPH.edge_index.t().tolist())
            if min(TARGETS[r, s], TARGETS[r, t]) >= 0
        ]
        rows, pairs = zip(*known, strict=True)
        assert_close(loss[r], functional.cross_entropy(EDGE[r].flatten(1)[list(rows)], torch.tensor(pairs)))


def test_weights_multiply_the_losses_of_labels_and_pairs():
    weights = torch.rand(2, 3, generator=GENERATOR)
    pairs = torch.rand(2, 3, 3, generator=GENERATOR)
    node, edge = node_loss(NODE, TARGETS, 0.1, weights), edge_loss(EDGE, TARGETS, GRAPH, 0.1, pairs)
    for r in range(2):
        alone = functional.cross_entropy(NODE[r], TARGETS[r], ignore_index=-1, label_smoothing=0.1, reduction="none")
        known = TARGETS[r] >= 0
        assert_close(node[r], (alone * weights[r][TARGETS[r]])[known].mean())
        source, target = TARGETS[r][GRAPH.edge_index]
        both = (source >= 0) & (target >= 0)
        labels = (3 * source + target)[both]
        alone = functional.cross_entropy(EDGE[r].flatten(1)[both], labels, label_smoothing=0.1, reduction="none")
        assert_close(edge[r], (alone * pairs[r].flatten()[labels]).mean())


def test_all_replicas_can_share_one_set_of_labels():
    assert_close(node_loss(NODE, TARGETS[:1])[1], node_loss(NODE[1:], TARGETS[:1])[0])


def test_no_labels_give_no_loss_and_no_gradient():
    logits = NODE.clone().requires_grad_()
    loss = node_loss(logits, torch.full((2, 5), -1))
    loss.sum().backward()
    assert loss.tolist() == [0.0, 0.0] and logits.grad.eq(0).all()


def test_consistency_penalty_is_the_gap_to_node_marginals():
    node, edge = NODE.softmax(-1), EDGE.flatten(2).softmax(-1).view_as(EDGE)
    expected = torch.zeros(2)
    for e, (s, t) in enumerate(GRAPH.edge_index.t().tolist()):
        expected += (edge[:, e].sum(-1) - node[:, s]).square().sum(-1)
        expected += (edge[:, e].sum(-2) - node[:, t]).square().sum(-1)
    assert_close(consistency_penalty(NODE, EDGE, GRAPH), expected / 4)
    product = (node[:, GRAPH.edge_index[0], :, None] * node[:, GRAPH.edge_index[1], None, :]).log()
    assert float(consistency_penalty(NODE, product, GRAPH).abs().max()) < 1e-6
