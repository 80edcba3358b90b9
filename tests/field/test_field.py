"""Scores, clamping and forbidding against their definitions."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DTYPE, fields, union
from torch.testing import assert_close

from accord import PairwiseField
from accord.errors import InfeasibleError


def score_by_hand(field, labels):
    total = sum(float(field.node[s, y]) for s, y in enumerate(labels))
    return total + sum(
        float(field.edge[e, labels[s], labels[t]]) for e, (s, t) in enumerate(field.edge_index.t().tolist())
    )


@given(fields(max_nodes=4, replicas=((),)))
def test_score_is_the_sum_of_potentials(field):
    for labels in itertools.product(range(field.num_states), repeat=field.num_nodes):
        assert field.score(torch.tensor(labels)).tolist() == pytest.approx([score_by_hand(field, labels)])


@given(fields(max_nodes=4, replicas=((2,),)), st.integers(1, 4))
def test_many_labellings_are_scored_at_once(field, count):
    labels = torch.randint(0, field.num_states, (count, 2, field.num_nodes), generator=torch.Generator().manual_seed(0))
    scores = field.score(labels)
    assert scores.shape == (count, 2, 1)
    for c, r in itertools.product(range(count), range(2)):
        alone = PairwiseField(field.edge_index, field.node[r], field.edge[r])
        assert_close(scores[c, r], alone.score(labels[c, r]))


@given(st.lists(fields(max_nodes=4, min_states=2, max_states=2, replicas=((),)), min_size=1, max_size=3))
def test_scores_of_a_batch_are_per_graph(parts):
    labels = [torch.zeros(part.num_nodes, dtype=torch.long) for part in parts]
    alone = torch.cat([part.score(y) for part, y in zip(parts, labels, strict=True)])
    assert_close(union(parts).score(torch.cat(labels)), alone)


@given(fields(max_nodes=4, replicas=((),)), st.data())
def test_clamping_leaves_one_state_and_its_score(field, data):
    drawn = data.draw(
        st.lists(st.integers(-1, field.num_states - 1), min_size=field.num_nodes, max_size=field.num_nodes)
    )
    clamped = field.clamp(torch.tensor(drawn))
    for labels in itertools.product(range(field.num_states), repeat=field.num_nodes):
        agrees = all(fixed in (-1, y) for fixed, y in zip(drawn, labels, strict=True))
        expected = score_by_hand(field, labels) if agrees else -torch.inf
        assert clamped.score(torch.tensor(labels)).tolist() == pytest.approx([expected])


def chain():
    index = torch.tensor([[0, 2], [1, 1]])
    return PairwiseField(index, torch.zeros(3, 3, dtype=DTYPE), torch.zeros(2, 3, 3, dtype=DTYPE))


def test_forbidding_is_symmetric_unless_direction_counts():
    both = chain().forbid([(0, 1)])
    assert (both.edge == -torch.inf).nonzero().tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0]]
    oriented = chain().forbid(torch.tensor([[0, 1]]), symmetric=False)
    assert (oriented.edge == -torch.inf).nonzero().tolist() == [[0, 0, 1], [1, 0, 1]]
    one = chain().forbid([(2, 2)], edges=torch.tensor([1]))
    assert (one.edge == -torch.inf).nonzero().tolist() == [[1, 2, 2]]
    assert chain().forbid([]).edge.eq(0).all()


def test_fields_are_not_changed_by_what_is_derived_from_them():
    field = chain()
    field.clamp(torch.tensor([0, -1, 2]))
    field.forbid([(0, 0)])
    assert field.node.eq(0).all() and field.edge.eq(0).all()


def test_clamping_to_a_forbidden_state_is_infeasible():
    node = torch.zeros(3, 3, dtype=DTYPE)
    node[1, 2] = -torch.inf
    with pytest.raises(InfeasibleError, match="node 1"):
        chain().with_potentials(node=node).clamp(torch.tensor([-1, 2, -1]))


def test_moving_keeps_the_field():
    field = union([chain(), chain()])
    single = field.to(torch.float32)
    assert single.node.dtype == single.edge.dtype == torch.float32
    assert single.num_graphs == 2 and torch.equal(single.edge_index, field.edge_index)
    assert field.to("cpu").graph.tolist() == field.graph.tolist()
