"""Decoding where beliefs are tied: symmetric fields."""

import torch
from inference.search_cases import glass, grid_edges, small_fields

from accord import PairwiseField, propagate
from accord.inference.search import _native


def test_a_glass_is_decoded_far_above_single_changes():
    field = glass(32)
    labels = propagate(field, semiring="max").decode()
    assert (
        field.score(labels) >= 1380
    )  # about 1000 with all ties at state 0; restarts of single changes reach about 1130


def test_decoding_is_repeatable():
    field = glass(20, seed=3)
    one, two = (propagate(field).decode() for _ in range(2))
    assert torch.equal(one, two)


def test_decided_graphs_of_a_batch_keep_their_labels(monkeypatch):
    """Only the second graph is searched."""
    tied, clear = glass(6), glass(6, seed=1)
    node = torch.cat([10 * torch.randn(36, 2, generator=torch.Generator().manual_seed(0)).double(), tied.node])
    field = PairwiseField(
        torch.cat([clear.edge_index, tied.edge_index + 36], dim=1),
        node,
        torch.cat([clear.edge, tied.edge]),
        torch.arange(2).repeat_interleave(36),
    )
    searched = []
    solve = _native.solve
    monkeypatch.setattr(
        _native, "solve", lambda model, *a, **k: searched.append(model.num_nodes) or solve(model, *a, **k)
    )
    labels = propagate(field, semiring="max").decode()
    assert searched == [36]
    alone = PairwiseField(clear.edge_index, node[:36], clear.edge)
    assert torch.equal(labels[:36], propagate(alone, semiring="max").decode())


def test_replicas_are_searched_one_by_one(monkeypatch):
    field = glass(8)
    both = field.with_potentials(node=torch.stack([field.node, 9 * torch.randn(64, 2).double()]))
    labels = propagate(both, semiring="max").decode()
    assert labels.shape == (2, 64)
    assert both.score(labels)[0, 0] >= both.score(propagate(field, semiring="max").decode())[0, 0] - 1e-9


def test_trees_with_ties_are_not_searched(monkeypatch):
    monkeypatch.setattr(_native, "solve", lambda *a, **k: 1 / 0)
    chain = torch.stack([torch.arange(9), torch.arange(1, 10)])
    propagate(PairwiseField(chain, torch.zeros(10, 3), torch.zeros(9, 3, 3)), semiring="max").decode()


def test_forbidden_pairs_beside_ties_are_respected():
    field = small_fields(50, seed=12)
    node = torch.where(field.node == -torch.inf, field.node, 0.0)
    field = field.with_potentials(node=node)
    labels = propagate(field, semiring="max").decode()
    assert (field.score(labels) > -torch.inf).all()


def test_equal_scores_keep_the_labels_of_beliefs():
    edge_index = grid_edges(4, 4)
    field = PairwiseField(edge_index, torch.zeros(16, 2), torch.eye(2).expand(edge_index.shape[1], 2, 2))
    assert propagate(field, semiring="max").decode().tolist() == [0] * 16
