"""Propagation of regions: exact on junction trees of triangles, and the generalised proposition."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DTYPE
from support.triangle_cases import all_pairs, combined, joint_marginals, junction_trees, loopy_graphs, random_field

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import InfeasibleError, InputTypeError
from accord.field.triangles import TriangleField
from accord.inference import eliminate_beliefs
from accord.inference.triangles import propagate_triangles

CLOSE = {"rtol": 0, "atol": 1e-6}
STATES, SEEDS = st.integers(2, 3), st.integers(0, 2**31)


@settings(max_examples=25)
@given(junction_trees(), STATES, SEEDS, st.sampled_from([(), (2,)]))
def test_sum_product_is_exact_on_junction_trees_of_triangles(graph, states, seed, replicas):
    field = random_field(*graph, states, seed, replicas=replicas)
    beliefs, exact = propagate_triangles(field, max_sweeps=600), enumerate_beliefs(field)
    assert bool(beliefs.converged.all())
    torch.testing.assert_close(beliefs.node, exact.node, **CLOSE)
    torch.testing.assert_close(beliefs.edge, exact.factors[0], **CLOSE)
    torch.testing.assert_close(beliefs.triangle, exact.factors[1], **CLOSE)
    torch.testing.assert_close(beliefs.log_partition, exact.log_partition, **CLOSE)


@settings(max_examples=15)
@given(junction_trees(), STATES, SEEDS)
def test_max_product_is_exact_on_junction_trees_of_triangles(graph, states, seed):
    field = random_field(*graph, states, seed)
    beliefs, exact = propagate_triangles(field, "max", max_sweeps=600), enumerate_beliefs(field, "max")
    torch.testing.assert_close(beliefs.node, exact.node, **CLOSE)
    assert torch.equal(beliefs.decode(), exact.decode())
    torch.testing.assert_close(beliefs.log_partition, exact.log_partition)


@settings(max_examples=25)
@given(junction_trees(max_nodes=6), STATES, SEEDS)
def test_consistent_pseudomarginals_are_the_marginals_on_junction_trees(graph, states, seed):
    """Proposition (i): the product with these counting numbers is a distribution, and has these marginals."""
    count, edge_index = graph
    node, edge, triple, corner = joint_marginals(count, edge_index, states, seed)
    exact = enumerate_beliefs(combined(node, edge, triple, edge_index, corner))
    torch.testing.assert_close(exact.node, node)
    torch.testing.assert_close(exact.factors[0], edge)
    torch.testing.assert_close(exact.factors[1], triple)
    torch.testing.assert_close(exact.log_partition, torch.zeros(1, dtype=DTYPE))


@settings(max_examples=25)
@given(loopy_graphs(), STATES, SEEDS, st.sampled_from([0.0, 0.5]))
def test_consistent_pseudomarginals_are_a_fixed_point_on_any_graph(graph, states, seed, damping):
    """Proposition (ii): messages that say nothing stay, and the beliefs are the pseudomarginals."""
    count, edge_index = graph
    node, edge, triple, corner = joint_marginals(count, edge_index, states, seed)
    beliefs = propagate_triangles(combined(node, edge, triple, edge_index, corner), damping=damping)
    assert bool((beliefs.sweeps == 1).all()) and bool(beliefs.converged.all())
    torch.testing.assert_close(beliefs.node, node)
    torch.testing.assert_close(beliefs.edge, edge)
    torch.testing.assert_close(beliefs.triangle, triple)
    torch.testing.assert_close(beliefs.log_partition, torch.zeros(1, dtype=DTYPE), rtol=0, atol=1e-9)


def test_factor_propagation_does_not_keep_them_where_triangles_share_an_edge():
    """Why regions are needed: factors of edges and triangles count a shared edge more than once."""
    edge_index = torch.tensor([[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]])
    node, edge, triple, corner = joint_marginals(4, edge_index, 2, 0)
    field = combined(node, edge, triple, edge_index, corner)
    assert float((propagate(field, damping=0.5).node - node).abs().max()) > 1e-3
    torch.testing.assert_close(propagate_triangles(field).node, node)


@settings(max_examples=15)
@given(loopy_graphs(), SEEDS)
def test_without_triangles_it_is_belief_propagation(graph, seed):
    count, edge_index = graph
    field = random_field(count, edge_index, 2, seed, scale=0.3)
    empty = TriangleField(field.pairs, torch.zeros(0, 3, dtype=torch.long), torch.zeros(0, 2, 2, 2, dtype=DTYPE))
    ours, theirs = propagate_triangles(empty, max_sweeps=500), propagate(field.pairs, damping=0.5, max_sweeps=500)
    torch.testing.assert_close(ours.node, theirs.node, **CLOSE)
    torch.testing.assert_close(ours.log_partition, theirs.log_partition, **CLOSE)


def test_regions_are_near_exact_where_few_triangles_share_an_edge_and_wrong_where_many_do():
    """Why `solve_triangles` does not use them on dense graphs."""
    errors = {}
    for count in (5, 8):  # edges of complete graphs are in 3 and in 6 triangles
        field = random_field(count, all_pairs(count), 2, 3, scale=0.3)
        exact = eliminate_beliefs(field).node.exp()
        both = propagate_triangles(field, max_sweeps=500), propagate(field, damping=0.5)
        errors[count] = [float((beliefs.node.exp() - exact).abs().max()) for beliefs in both]
    assert errors[5][0] < 0.2 * errors[5][1]
    assert errors[8][0] > errors[8][1]


def test_a_batch_equals_its_graphs_one_by_one():
    one = random_field(4, torch.tensor([[0, 0, 1, 1, 2], [1, 2, 2, 3, 3]]), 2, 0)
    two = random_field(3, torch.tensor([[0, 1, 2], [1, 2, 0]]), 2, 1, scale=3.0)
    pairs = PairwiseField(
        torch.cat([one.edge_index, two.edge_index + 4], 1),
        torch.cat([one.node, two.node]),
        torch.cat([one.edge, two.edge]),
        torch.tensor([0] * 4 + [1] * 3),
    )
    corner = torch.cat([one.triangles.corner, two.triangles.corner + 4])
    both = propagate_triangles(TriangleField(pairs, corner, torch.cat([one.triangle, two.triangle])))
    apart = [propagate_triangles(field) for field in (one, two)]
    torch.testing.assert_close(both.node, torch.cat([beliefs.node for beliefs in apart]), rtol=0, atol=1e-9)
    assert both.sweeps.tolist() == [int(beliefs.sweeps) for beliefs in apart]


@settings(max_examples=20)
@given(junction_trees(max_nodes=6), SEEDS)
def test_forbidden_states_are_never_believed(graph, seed):
    field = random_field(*graph, 3, seed, barred=0.08)
    try:
        exact = enumerate_beliefs(field)
    except InfeasibleError:
        return
    beliefs = propagate_triangles(field, max_sweeps=600)
    assert bool((beliefs.node.exp() - exact.node.exp()).abs().max() < 1e-5)
    assert bool(field.score(beliefs.decode()) > -torch.inf)


def test_a_node_without_states_is_refused():
    field = random_field(3, torch.tensor([[0, 1, 2], [1, 2, 0]]), 2, 0)
    barred = field.node.clone()
    barred[1] = -torch.inf
    with pytest.raises(InfeasibleError, match="node 1"):
        propagate_triangles(field.with_potentials(barred))


def test_other_fields_are_refused():
    with pytest.raises(InputTypeError, match="TriangleField"):
        propagate_triangles(random_field(3, torch.tensor([[0, 1], [1, 2]]), 2, 0).pairs)
