"""Fields with triangles: the same scores as their definition, and the manners of a pairwise field."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.triangle_cases import loopy_graphs, random_field

from accord.errors import FieldError, GraphError
from accord.field.triangles import TriangleField, TrianglePseudomarginals
from accord.graphs import SIDES


@settings(max_examples=20)
@given(loopy_graphs(), st.integers(0, 2**31))
def test_score_is_the_sum_of_all_potentials(graph, seed):
    field = random_field(*graph, 3, seed)
    labels = torch.randint(3, (field.num_nodes,), generator=torch.Generator().manual_seed(seed))
    triples = [field.triangle[n][tuple(labels[c])] for n, c in enumerate(field.triangles.corner)]
    expected = field.pairs.score(labels)[0] + sum(triples, torch.zeros((), dtype=field.node.dtype))
    torch.testing.assert_close(field.score(labels)[0], expected)


@settings(max_examples=20)
@given(loopy_graphs(), st.integers(0, 2**31))
def test_sides_are_the_edges_between_corners(graph, seed):
    field = random_field(*graph, 2, seed)
    own = field.triangles
    for number, (one, two) in enumerate(SIDES):
        source, target = field.edge_index[:, own.side[:, number]]
        first, second = own.corner[:, one], own.corner[:, two]
        assert torch.equal(torch.where(own.turned[:, number], target, source), first)
        assert torch.equal(torch.where(own.turned[:, number], source, target), second)


def test_changed_potentials_keep_the_triangles():
    field = random_field(3, torch.tensor([[0, 1, 2], [1, 2, 0]]), 2, 0)
    changed = field.with_potentials(edge=2 * field.edge)
    assert isinstance(changed, TriangleField) and changed.triangles is field.triangles
    assert torch.equal(changed.edge, 2 * field.edge) and torch.equal(changed.triangle, field.triangle)
    clamped = field.clamp(torch.tensor([1, -1, -1]))
    assert isinstance(clamped, TriangleField) and clamped.node[0].tolist()[0] == -torch.inf
    assert isinstance(field.to(torch.float32), TriangleField)


def test_bad_triangles_are_refused():
    field = random_field(4, torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]]), 2, 0)
    with pytest.raises(GraphError, match="not an edge"):
        TriangleField(field.pairs, torch.tensor([[0, 1, 3]]), field.triangle)
    with pytest.raises(FieldError, match="one table for each triangle"):
        TriangleField(field.pairs, field.triangles, field.triangle[:, :1])


def test_pairs_have_no_interaction_of_three():
    generator = torch.Generator().manual_seed(0)
    one = torch.randn(3, 3, generator=generator).softmax(-1)  # a chain: the third label depends on the second alone
    start, step = one[0], torch.randn(3, 3, generator=generator).softmax(-1)
    chain = start[:, None, None] * one[:, :, None] * step[None]
    table = TrianglePseudomarginals(chain.log()[None])
    # A Markov chain has no interaction of three, but its ends depend on each other through the middle.
    assert float(TrianglePseudomarginals(chain.log()[None]).interaction().abs().max()) > 1e-3
    alone = start[:, None, None] * start[None, :, None] * start[None, None, :]
    flat = TrianglePseudomarginals(alone.log()[None]).interaction()
    torch.testing.assert_close(flat, torch.zeros_like(flat), rtol=0, atol=1e-5)
    assert table.shrunk(1.0).interaction().abs().max() < 1e-5


def test_barred_triples_stay_barred():
    logits = torch.zeros(1, 2, 2, 2)
    logits[0, 0] = -torch.inf
    table = TrianglePseudomarginals.from_logits(logits, 2.0).shrunk(0.1)
    assert bool((table.interaction()[0, 0] == -torch.inf).all()) and bool(table.interaction()[0, 1].isfinite().all())
