"""Decoding: exact on forests, never worse than the argmax it starts from, and free of forbidden pairs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DTYPE, fields, union
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import InfeasibleError
from accord.inference import eliminate_beliefs
from accord.inference.decoding import _polishing
from accord.inference.decoding._decoding import decode

EXACT = {"rtol": 0, "atol": 1e-9}


@given(fields(max_nodes=7, tree=True, ties=True), st.sampled_from(["sum", "max"]))
def test_forests_decode_to_an_optimum_ties_included(field, semiring):
    labels = propagate(field, semiring=semiring).decode()
    assert_close(field.score(labels), enumerate_beliefs(field, semiring="max").log_partition, **EXACT)


@given(fields(max_nodes=7, tree=True))
def test_forests_decode_exactly_even_without_a_sweep(field):
    labels = propagate(field, semiring="max", max_sweeps=0).decode()
    assert_close(field.score(labels), enumerate_beliefs(field, semiring="max").log_partition, **EXACT)


def test_ties_that_argmax_alone_gets_wrong():
    # Two labellings are best, 0-1 and 1-0; each node's own best state is a tie, and 0-0 would be the naive answer.
    edge = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]], dtype=DTYPE)
    field = PairwiseField(torch.tensor([[0], [1]]), torch.zeros(2, 2, dtype=DTYPE), edge)
    beliefs = propagate(field, semiring="max")
    assert beliefs.node.eq(0).all()
    assert sorted(beliefs.decode().tolist()) == [0, 1]


@given(fields(max_nodes=7, ties=True) | fields(max_nodes=7))
def test_polish_never_lowers_the_score(field):
    beliefs = propagate(field, semiring="max", max_sweeps=5)
    decoded, argmax = field.score(beliefs.decode()), field.score(beliefs.node.argmax(-1))
    assert bool((decoded >= argmax - 1e-9).all())
    assert bool((decoded <= enumerate_beliefs(field, semiring="max").log_partition + 1e-9).all())


@given(fields(max_nodes=7))
def test_no_single_change_improves_a_decoded_labelling(field):
    labels = propagate(field, semiring="max", max_sweeps=3).decode()
    score = field.score(labels)
    for node in range(field.num_nodes):
        for state in range(field.num_states):
            other = labels.clone()
            other[..., node] = state
            assert bool((field.score(other) <= score + 1e-9).all())


@pytest.mark.parametrize(("share", "penalty"), [(0.0, 0.0), (0.02, torch.inf), (0.01, 1e20)])
def test_local_search_on_a_dense_graph_ends_where_no_change_helps(share, penalty):
    """From the nodes' own best states, on which neighbours disagree; large penalties do not hide small differences."""
    generator = torch.Generator().manual_seed(0)
    index = torch.combinations(torch.arange(50)).T
    index = index[:, torch.rand(index.shape[1], generator=generator) < 0.4]
    node = torch.randn(4, 50, 3, generator=generator, dtype=DTYPE)
    edge = torch.randn(4, index.shape[1], 3, 3, generator=generator, dtype=DTYPE)
    edge = edge.masked_fill(torch.rand(edge.shape, generator=generator) < share, -penalty)
    field = PairwiseField(index, node, edge)
    labels = propagate(field, semiring="max", max_sweeps=0).decode()
    moved = (labels != node.argmax(-1)).sum(-1)
    assert bool((moved > 10).all()), "or the test shows nothing"
    score = field.score(labels)
    assert bool((score > -1e10).all())
    for place in range(50):
        for state in range(3):
            other = labels.clone()
            other[:, place] = state
            assert bool((field.score(other) <= score + 1e-9).all())
    for replica in range(4):
        alone = PairwiseField(index, node[replica], edge[replica])
        assert torch.equal(propagate(alone, semiring="max", max_sweeps=0).decode(), labels[replica])


def test_changes_travel_all_the_way_around_a_long_ring(monkeypatch):
    """Each node changes after its neighbour has: it takes as many rounds as half the ring has nodes."""
    monkeypatch.setattr(_polishing, "MAX_ROUNDS", 5)
    index = torch.stack([torch.arange(60), (torch.arange(60) + 1) % 60])
    node = torch.zeros(60, 2)
    node[0, 1] = 9.0
    field = PairwiseField(index, node, torch.tensor([[0.0, -1.0], [-1.0, 1.5]]).expand(60, 2, 2))
    all_alike = torch.tensor([1.0, 0.0]).expand(60, 2)
    assert bool((decode(field, all_alike) == 1).all())


@given(fields(max_nodes=7, max_states=4, barred=0.25))
def test_decoded_labels_are_never_forbidden_if_elimination_is_feasible(field):
    try:
        best = eliminate_beliefs(field, semiring="max").log_partition
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field, semiring="max").decode()
        return
    score = field.score(propagate(field, semiring="max", max_sweeps=10).decode())
    assert bool(score.isfinite().all())
    assert bool((score <= best + 1e-9).all())


def test_colouring_that_single_moves_cannot_repair():
    """Three colours on a wheel-like graph from uniform beliefs: local search gets stuck, decoding does not."""
    rows, columns = 5, 6
    number = torch.arange(rows * columns).reshape(rows, columns)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:]), (number[:-1, :-1], number[1:, 1:])]
    index = torch.cat([torch.stack([a.flatten(), b.flatten()]) for a, b in pairs], 1)
    flat = PairwiseField(index, torch.zeros(rows * columns, 3), torch.zeros(index.shape[1], 3, 3))
    field = flat.forbid([(0, 0), (1, 1), (2, 2)])
    labels = propagate(field, semiring="max").decode()
    assert bool((labels[index[0]] != labels[index[1]]).all())


def test_infeasible_constraints_raise():
    triangle = PairwiseField(torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.zeros(3, 2), torch.zeros(3, 2, 2))
    two_colours = triangle.forbid([(0, 0), (1, 1)])
    with pytest.raises(InfeasibleError, match="no labelling"):
        propagate(two_colours, semiring="max").decode()
    with pytest.raises(InfeasibleError, match="node 1"):
        bad = torch.zeros(3, 2)
        bad[1] = -torch.inf
        propagate(triangle.with_potentials(node=bad))


@given(st.lists(fields(max_nodes=5, min_states=3, max_states=3, replicas=((),)), min_size=2, max_size=4))
def test_a_batch_decodes_like_its_graphs(parts):
    whole = propagate(union(parts), semiring="max", max_sweeps=20)
    scores = [propagate(part, semiring="max", max_sweeps=20).log_partition for part in parts]
    assert_close(whole.log_partition, torch.cat(scores, -1), **EXACT)


def test_a_graph_decodes_alike_alone_and_among_others():
    """Also if many changes are possible, however nodes are numbered in the batch."""
    generator = torch.Generator().manual_seed(1)
    index = torch.combinations(torch.arange(20)).T
    node = torch.randn(3, 20, 3, generator=generator, dtype=DTYPE)
    edge = torch.randn(3, index.shape[1], 3, 3, generator=generator, dtype=DTYPE)
    alone = [propagate(PairwiseField(index, n, e), max_sweeps=0).decode() for n, e in zip(node, edge, strict=True)]
    # Node k of graph g is node 3 k + g of the batch.
    together = torch.cat([3 * index + graph for graph in range(3)], 1)
    batch = PairwiseField(together, node.transpose(0, 1).flatten(0, 1), edge.flatten(0, 1), torch.arange(60) % 3)
    labels = propagate(batch, max_sweeps=0).decode()
    for graph, expected in enumerate(alone):
        assert torch.equal(labels[graph::3], expected)


@given(fields(max_nodes=5, replicas=((3,),)))
def test_replicas_decode_one_by_one(field):
    together = propagate(field, semiring="max", max_sweeps=20).log_partition
    for replica in range(3):
        alone = PairwiseField(field.edge_index, field.node[replica], field.edge[replica])
        assert_close(propagate(alone, semiring="max", max_sweeps=20).log_partition, together[replica], **EXACT)
