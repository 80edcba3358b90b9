"""Truths about belief propagation, checked against enumeration in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DTYPE, edge_lists, fields, union
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import InfeasibleError

EXACT = {"rtol": 0, "atol": 1e-9}


def grid_field(rows, columns, states, seed, scale=1.0, lead=()):
    generator = torch.Generator().manual_seed(seed)
    number = torch.arange(rows * columns).reshape(rows, columns)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
    index = torch.cat([across, down], 1)
    node = torch.randn(*lead, rows * columns, states, generator=generator, dtype=DTYPE)
    edge = scale * torch.randn(*lead, index.shape[1], states, states, generator=generator, dtype=DTYPE)
    return PairwiseField(index, node, edge)


@given(fields(tree=True))
def test_sum_product_is_exact_on_forests(field):
    beliefs, exact = propagate(field), enumerate_beliefs(field)
    assert bool(beliefs.converged.all())
    assert_close(beliefs.node, exact.node, **EXACT)
    assert_close(beliefs.edge, exact.edge, **EXACT)
    assert_close(beliefs.log_partition, exact.log_partition, **EXACT)


@given(fields(tree=True))
def test_max_product_gives_max_marginals_on_forests(field):
    beliefs, exact = propagate(field, semiring="max"), enumerate_beliefs(field, semiring="max")
    assert_close(beliefs.node, exact.node, **EXACT)
    assert_close(beliefs.edge, exact.edge, **EXACT)
    assert_close(beliefs.log_partition, exact.log_partition, **EXACT)


@given(fields(tree=True, barred=0.2))
def test_forests_are_exact_with_forbidden_entries(field):
    try:
        exact = enumerate_beliefs(field)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field, semiring="max").decode()
        return
    beliefs = propagate(field)
    assert_close(beliefs.node, exact.node, **EXACT)
    assert_close(beliefs.edge, exact.edge, **EXACT)
    assert_close(beliefs.log_partition, exact.log_partition, **EXACT)


@given(fields(tree=True), st.floats(0, 0.7))
def test_damping_does_not_change_the_result(field, damping):
    beliefs = propagate(field, damping=damping, max_sweeps=2000)
    assert_close(beliefs.node, enumerate_beliefs(field).node, rtol=0, atol=1e-8)


def test_long_paths_get_as_many_sweeps_as_they_need():
    length = 500
    index = torch.stack([torch.arange(length - 1), torch.arange(1, length)])
    stiff = 30.0 * torch.eye(2, dtype=DTYPE).expand(length - 1, 2, 2)
    node = torch.zeros(length, 2, dtype=DTYPE)
    node[0, 1] = 2.0  # the only evidence is at one end and must reach the other
    beliefs = propagate(PairwiseField(index, node, stiff))
    assert bool(beliefs.converged.all())
    assert_close(beliefs.node[-1], node[0].log_softmax(-1), rtol=0, atol=1e-6)


def bound_options():
    return {"edge_appearance": "spanning", "damping": 0.5, "max_sweeps": 5000, "tolerance": 1e-10}


@given(fields(max_nodes=6, replicas=((),)))
def test_spanning_appearance_bounds_the_partition_function(field):
    beliefs = propagate(field, **bound_options())
    if bool(beliefs.converged.all()):
        assert float((beliefs.log_partition - enumerate_beliefs(field).log_partition).min()) > -1e-8


def test_spanning_bound_is_reached_often_and_beats_plain_where_plain_is_below():
    converged, below = 0, 0
    for seed in range(20):
        field = grid_field(3, 3, 2, seed, scale=2.0)
        exact = enumerate_beliefs(field).log_partition
        reweighted = propagate(field, **bound_options())
        plain = propagate(field, damping=0.5, max_sweeps=5000, tolerance=1e-10)
        converged += int(reweighted.converged.all())
        below += int((plain.log_partition < exact - 1e-9).all())
        if reweighted.converged.all():
            assert float(reweighted.log_partition - exact) > -1e-8
    assert converged >= 18  # the test above would pass for a method that never converges
    assert below >= 1  # plain propagation is no bound, so the reweighting has an effect


@given(fields(tree=True))
def test_spanning_appearance_on_forests_is_plain(field):
    assert_close(propagate(field, edge_appearance="spanning").node, propagate(field).node, rtol=0, atol=1e-9)


@given(st.lists(fields(max_nodes=5, min_states=2, max_states=2, replicas=((),)), min_size=1, max_size=4))
def test_a_batch_equals_its_graphs(parts):
    for semiring in ("sum", "max"):
        options = {"semiring": semiring, "max_sweeps": 30, "tolerance": 1e-6}
        whole = propagate(union(parts), **options)
        alone = [propagate(part, **options) for part in parts]
        assert_close(whole.node, torch.cat([b.node for b in alone], -2), **EXACT)
        assert_close(whole.edge, torch.cat([b.edge for b in alone], -3), **EXACT)
        assert_close(whole.log_partition, torch.cat([b.log_partition for b in alone], -1), **EXACT)
        assert_close(whole.sweeps, torch.cat([b.sweeps for b in alone], -1))
        assert_close(whole.converged, torch.cat([b.converged for b in alone], -1))


@given(fields(max_nodes=6, replicas=((),)), st.randoms(use_true_random=False))
def test_renumbering_nodes_permutes_beliefs(field, random):
    new = list(range(field.num_nodes))
    random.shuffle(new)
    place = torch.tensor(new)  # old node i becomes node place[i]
    node = torch.empty_like(field.node)
    node[place] = field.node
    moved = PairwiseField(place[field.edge_index], node, field.edge)
    options = {"max_sweeps": 20, "tolerance": 0.0}
    assert_close(propagate(moved, **options).node[place], propagate(field, **options).node, **EXACT)


@given(fields(max_nodes=5, replicas=((),)))
def test_an_edge_means_the_same_in_both_directions(field):
    turned = PairwiseField(field.edge_index.flip(0), field.node, field.edge.transpose(-1, -2))
    options = {"max_sweeps": 20, "tolerance": 0.0}
    assert_close(propagate(turned, **options).node, propagate(field, **options).node, **EXACT)


@given(fields(max_nodes=5, replicas=((2, 3),)))
def test_replicas_equal_separate_runs(field):
    options = {"max_sweeps": 40, "tolerance": 1e-6, "damping": 0.3}
    together = propagate(field, **options)
    for a in range(2):
        for b in range(3):
            alone = propagate(PairwiseField(field.edge_index, field.node[a, b], field.edge[a, b]), **options)
            assert_close(together.node[a, b], alone.node, **EXACT)
            assert_close(together.edge[a, b], alone.edge, **EXACT)
            assert_close(together.log_partition[a, b], alone.log_partition, **EXACT)
            assert_close(together.sweeps[a, b], alone.sweeps)


@given(fields(max_nodes=5, replicas=((3,),)))
def test_shared_node_potentials_broadcast_over_replicas(field):
    shared = PairwiseField(field.edge_index, field.node[0], field.edge)
    copied = PairwiseField(field.edge_index, field.node[:1].expand(3, -1, -1), field.edge)
    assert shared.replicas == (3,)
    assert_close(propagate(shared, max_sweeps=9).node, propagate(copied, max_sweeps=9).node, **EXACT)


@given(fields())
def test_zero_edge_potentials_give_softmax(field):
    flat = field.with_potentials(edge=torch.zeros_like(field.edge))
    assert_close(propagate(flat).node, field.node.log_softmax(-1), **EXACT)


@given(fields(max_nodes=5, replicas=((),)), st.data())
def test_clamping_equals_conditioning(field, data):
    exact = enumerate_beliefs(field)
    labels = torch.full((field.num_nodes,), -1)
    node = data.draw(st.integers(0, field.num_nodes - 1))
    labels[node] = state = data.draw(st.integers(0, field.num_states - 1))
    clamped = enumerate_beliefs(field.clamp(labels))
    # p(y_s | y_node = state) = p(y_s, y_node = state) / p(y_node = state), read off edges of the free field.
    evidence = exact.node[node, state]
    assert_close(clamped.log_partition - exact.log_partition, evidence[None], **EXACT)
    for column, (s, t) in enumerate(field.edge_index.t().tolist()):
        if node == s:
            assert_close(clamped.node[t], exact.edge[column, state] - evidence, **EXACT)
        if node == t:
            assert_close(clamped.node[s], exact.edge[column, :, state] - evidence, **EXACT)


@given(fields(tree=True, replicas=((),)), st.data())
def test_propagation_conditions_exactly_on_forests(field, data):
    drawn = data.draw(
        st.lists(st.integers(-1, field.num_states - 1), min_size=field.num_nodes, max_size=field.num_nodes)
    )
    clamped = field.clamp(torch.tensor(drawn))
    assert_close(propagate(clamped).node, enumerate_beliefs(clamped).node, **EXACT)
    assert_close(propagate(clamped).log_partition, enumerate_beliefs(clamped).log_partition, **EXACT)


@given(fields(max_nodes=6, max_states=3, replicas=((),)))
def test_forbidden_pairs_have_no_mass(field):
    if field.num_states < 2:
        return
    barred = field.forbid([(0, 1)])
    try:
        beliefs = propagate(barred, damping=0.3)
    except InfeasibleError:
        return
    assert bool((beliefs.edge[..., 0, 1] == -torch.inf).all())
    assert bool((beliefs.edge[..., 1, 0] == -torch.inf).all())
    assert not bool(beliefs.edge.isnan().any())


@given(fields())
def test_beliefs_are_normalised(field):
    beliefs = propagate(field, max_sweeps=7)
    assert_close(beliefs.node.logsumexp(-1), torch.zeros_like(beliefs.node[..., 0]), **EXACT)
    assert_close(beliefs.edge.flatten(-2).logsumexp(-1), torch.zeros_like(beliefs.edge[..., 0, 0]), **EXACT)
    best = propagate(field, semiring="max", max_sweeps=7).node.amax(-1)
    assert_close(best, torch.zeros_like(best), **EXACT)


@given(fields(scale=0.5, replicas=((),)))
def test_edge_beliefs_marginalise_to_node_beliefs_at_convergence(field):
    beliefs = propagate(field, damping=0.2, max_sweeps=3000)
    if bool(beliefs.converged.all()):
        assert_close(beliefs.edge.logsumexp(-1), beliefs.node[field.edge_index[0]], rtol=0, atol=1e-8)
        assert_close(beliefs.edge.logsumexp(-2), beliefs.node[field.edge_index[1]], rtol=0, atol=1e-8)


@settings(max_examples=15)
@given(st.data())
def test_consistent_pseudomarginals_are_a_fixed_point(data):
    """Proposition 1: the paper's potentials, uniform messages; beliefs equal the pseudomarginals, loops or not."""
    from accord.field import Combination, Pseudomarginals

    num_nodes, states = data.draw(st.integers(2, 7)), data.draw(st.integers(2, 4))
    index = data.draw(edge_lists(num_nodes))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    node = torch.rand(num_nodes, states, generator=generator, dtype=DTYPE).add(0.1)
    node = node / node.sum(-1, keepdim=True)
    # A random table, scaled by Sinkhorn iterations to the right row and column sums.
    edge = torch.rand(index.shape[1], states, states, generator=generator, dtype=DTYPE).add(0.1)
    for _ in range(500):
        edge = edge * (node[index[0]] / edge.sum(-1))[..., :, None]
        edge = edge * (node[index[1]] / edge.sum(-2))[..., None, :]
    marginals = Pseudomarginals.from_probabilities(node, edge)
    field = Combination(normaliser="node").field(marginals, index)
    one = propagate(field, max_sweeps=1, tolerance=0.0)
    assert_close(
        one.messages, torch.full_like(one.messages, -torch.tensor(float(states)).log().item()), rtol=0, atol=1e-7
    )
    assert float(one.residual.max()) < 1e-8
    beliefs = propagate(field)
    assert_close(beliefs.node.exp(), node, rtol=0, atol=1e-8)
    assert_close(beliefs.edge.exp(), edge, rtol=0, atol=1e-8)
    # Tables with those sums have themselves as normaliser, so the other choice agrees here.
    own = Combination(normaliser="own").field(marginals, index)
    assert_close(own.edge, field.edge, rtol=0, atol=1e-7)


def test_gradients_through_fixed_sweeps():
    field = grid_field(2, 3, 2, seed=0, lead=(2,))

    def run(node, edge):
        beliefs = propagate(PairwiseField(field.edge_index, node, edge), max_sweeps=3, tolerance=0.0, damping=0.1)
        return beliefs.node, beliefs.edge, beliefs.log_partition

    inputs = (field.node.clone().requires_grad_(), field.edge.clone().requires_grad_())
    assert torch.autograd.gradcheck(run, inputs)


def test_gradients_stay_finite_around_forbidden_entries():
    field = grid_field(2, 3, 3, seed=0).forbid([(0, 1)])
    node = field.node.clone()
    node[0, 2] = node[1, :2] = -torch.inf
    node.requires_grad_()
    edge = field.edge.clone().requires_grad_()
    beliefs = propagate(PairwiseField(field.edge_index, node, edge), max_sweeps=5)
    (beliefs.log_partition.sum() + beliefs.node[:, 2].exp().sum()).backward()
    assert bool(node.grad.isfinite().all()) and bool(edge.grad.isfinite().all())


@given(fields(tree=True))
def test_gradient_of_the_log_partition_is_the_marginals(field):
    node = field.node.clone().requires_grad_()
    edge = field.edge.clone().requires_grad_()
    beliefs = propagate(PairwiseField(field.edge_index, node, edge))
    beliefs.log_partition.sum().backward()
    assert_close(node.grad, beliefs.node.exp(), rtol=0, atol=1e-8)
    if field.num_edges:
        assert_close(edge.grad, beliefs.edge.exp(), rtol=0, atol=1e-8)


def test_warm_start_continues_where_it_stopped():
    field = grid_field(4, 4, 3, seed=1)
    first = propagate(field, max_sweeps=5, tolerance=0.0)
    both = propagate(field, max_sweeps=4, tolerance=0.0, start=first)
    assert_close(both.messages, propagate(field, max_sweeps=9, tolerance=0.0).messages, **EXACT)
    converged = propagate(field, max_sweeps=500)
    assert int(propagate(field, start=converged).sweeps.max()) <= 1
    assert_close(propagate(field, start=converged.messages).node, converged.node, **EXACT)


def test_warm_start_allows_states_that_were_impossible_before():
    field = grid_field(2, 2, 2, seed=3)
    clamped = propagate(field.clamp(torch.tensor([1, -1, -1, -1])).forbid([(0, 1)]))
    assert bool((clamped.messages == -torch.inf).any())
    freed = propagate(field, start=clamped, damping=0.2, max_sweeps=2000)
    assert_close(freed.node, propagate(field, damping=0.2, max_sweeps=2000).node, rtol=0, atol=1e-8)


@pytest.mark.parametrize("semiring", ["sum", "max"])
def test_extreme_potentials_stay_finite(semiring):
    field = grid_field(3, 3, 3, seed=0)
    for dtype in (torch.float32, torch.float64):
        wide = PairwiseField(field.edge_index, 500 * field.node.to(dtype), 500 * field.edge.to(dtype))
        beliefs = propagate(wide, semiring=semiring, max_sweeps=50)
        assert not bool(beliefs.node.isnan().any()) and not bool(beliefs.edge.isnan().any())
        assert bool(beliefs.log_partition.isfinite().all())


def test_graphs_without_edges_or_nodes():
    empty = PairwiseField(torch.empty(2, 0, dtype=torch.long), torch.empty(0, 3), torch.empty(0, 3, 3))
    beliefs = propagate(empty)
    assert beliefs.node.shape == (0, 3) and beliefs.edge.shape == (0, 3, 3)
    assert beliefs.log_partition.tolist() == [0.0] and beliefs.converged.tolist() == [True]
    assert beliefs.decode().shape == (0,)
    assert enumerate_beliefs(empty).log_partition.tolist() == [0.0]
    lone = PairwiseField(torch.empty(2, 0, dtype=torch.long), torch.tensor([[0.0, 1.0]]), torch.empty(0, 2, 2))
    assert propagate(lone).sweeps.tolist() == [0] and propagate(lone).decode().tolist() == [1]
    hollow = PairwiseField(lone.edge_index, lone.node, lone.edge, torch.tensor([1]), 3)
    assert propagate(hollow).log_partition[[0, 2]].tolist() == [0.0, 0.0]


def test_thousands_of_tiny_graphs_in_one_batch():
    parts, count = 2000, 5
    generator = torch.Generator().manual_seed(0)
    base = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 2]])
    index = (base[:, None] + count * torch.arange(parts)[:, None]).reshape(2, -1)
    node = torch.randn(parts * count, 3, generator=generator, dtype=DTYPE)
    edge = torch.randn(index.shape[1], 3, 3, generator=generator, dtype=DTYPE)
    graph = torch.arange(parts).repeat_interleave(count)
    beliefs = propagate(PairwiseField(index, node, edge, graph), max_sweeps=60, tolerance=1e-8)
    assert beliefs.converged.shape == (parts,) and float(beliefs.converged.double().mean()) > 0.9
    seven = slice(7 * count, 8 * count)
    alone = propagate(PairwiseField(base, node[seven], edge[7 * 5 : 8 * 5]), max_sweeps=60, tolerance=1e-8)
    assert_close(beliefs.node[seven], alone.node, **EXACT)
