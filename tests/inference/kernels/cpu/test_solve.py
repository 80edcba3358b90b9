"""The compiled kernel has several ways to solve a field; results must not depend on which one is taken."""

import pytest
import torch
from inference.kernel_cases import assert_same, random_field
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.inference.kernels.cpu import _solve as _native

pytestmark = pytest.mark.skipif(_native.unavailable() is not None, reason="no compiled kernel")


def ring(states, scale, dtype, nodes=40, seed=0):
    """A ring with chords, one of whose tables has the span `scale`: the ways differ in the spans they support."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.arange(nodes)
    index = torch.cat(
        [torch.stack([first, (first + 1) % nodes]), torch.stack([first[::3], (first[::3] + 7) % nodes])], 1
    )
    node = torch.randn(nodes, states, generator=generator, dtype=torch.float64)
    edge = torch.randn(index.shape[1], states, states, generator=generator, dtype=torch.float64)
    edge[5] *= scale / (edge[5].max() - edge[5].min())
    return PairwiseField(index, node.to(dtype), edge.to(dtype))


@pytest.mark.parametrize("states", [2, 3, 5, 8, 12])
@pytest.mark.parametrize("span", [12.0, 16.0, 20.0, 29.0, 33.0, 59.0, 61.0, 80.0, 290.0, 310.0, 650.0])
def test_spans_on_either_side_of_every_way(states, span):
    """Ratios, logs and log space are used for different spans; results are the same."""
    for dtype, atol in ((torch.float64, 1e-9), (torch.float32, 1e-3)):
        field = ring(states, span, dtype)
        options = {"max_sweeps": 12, "tolerance": 0.0}
        expected = propagate(field, backend="reference", **options)
        found = propagate(field, backend="native", **options)
        assert_close(found.messages, expected.messages, rtol=1e-5, atol=atol)
        assert_close(found.residual, expected.residual, rtol=1e-5, atol=atol)


def wheels(states, spokes, span, towards, copies, dtype):
    """Hubs that all their neighbours, in a ring, persuade of the same state."""
    rim = 1 + torch.arange(spokes)
    one = torch.cat([torch.stack([torch.zeros_like(rim), rim]), torch.stack([rim, rim.roll(-1)])], 1)
    index = (one[:, None] + (spokes + 1) * torch.arange(copies)[:, None]).flatten(1)
    node = torch.zeros(copies * (spokes + 1), states, dtype=dtype)
    node[:, towards] = 12.0
    node[:: spokes + 1, towards] = 5.0
    edge = (span * torch.eye(states, dtype=dtype)).expand(index.shape[1], -1, -1).contiguous()
    graph = torch.arange(copies).repeat_interleave(spokes + 1)
    return PairwiseField(index, node, edge, graph)


@pytest.mark.parametrize("states", [3, 7, 8])
@pytest.mark.parametrize("towards", [0, -1])
@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize(
    ("dtype", "spokes", "span"),
    [(torch.float32, 20, 2.25), (torch.float32, 20, 2.5), (torch.float32, 60, 2.5)]
    + [(torch.float64, 15, 25.0), (torch.float64, 15, 25.25), (torch.float64, 60, 25.25)],
)
def test_totals_on_either_side_of_where_products_overflow(states, towards, copies, dtype, spokes, span):
    """Up to e^50 (e^380) between two states, totals are products; beyond, sums of logs."""
    field = wheels(states, spokes, span, towards, copies, dtype)
    tolerances = {"rtol": 2e-6, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 0, "atol": 1e-9}
    for options in ({"tolerance": 0.0}, {"tolerance": 1e-4}, {"tolerance": 0.0, "damping": 0.3}):
        expected = propagate(field.to(torch.float64), backend="reference", max_sweeps=9, **options)
        found = propagate(field, backend="native", max_sweeps=9, **options)
        for name in ("messages", "node", "residual"):
            assert_close(getattr(found, name).double(), getattr(expected, name), **tolerances)
        assert_close(found.sweeps, expected.sweeps)


@pytest.mark.parametrize("states", [2, 3, 9])
def test_large_potentials_with_tables_at_the_largest_span_of_the_quickest_way(states):
    """Totals whose exponentials overflow, less the one message that made them so large."""
    field = ring(states, 29.0, torch.float64)
    node = field.node * 40
    node[::4, 0] += 90.0
    node[1::4, -1] += 90.0
    for dtype, atol in ((torch.float64, 1e-9), (torch.float32, 2e-3)):
        each = field.with_potentials(node=node).to(dtype)
        options = {"max_sweeps": 20, "tolerance": 0.0}
        expected = propagate(each, backend="reference", **options)
        assert_close(propagate(each, backend="native", **options).messages, expected.messages, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("states", [2, 3, 9])
@pytest.mark.parametrize("far", [5.0, 100.0, 1000.0])
def test_messages_to_start_from_may_have_a_large_span(states, far):
    field = ring(states, 5.0, torch.float64)
    start = far * torch.randn(
        2 * field.num_edges, states, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    )
    for semiring in ("sum", "max"):
        options = {"semiring": semiring, "max_sweeps": 3, "tolerance": 0.0, "damping": 0.5, "start": start}
        expected = propagate(field, backend="reference", **options)
        found = propagate(field, backend="native", **options)
        assert_close(found.messages, expected.messages, rtol=0, atol=1e-9)
        assert_close(found.residual, expected.residual, rtol=0, atol=1e-9)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("bias", [3.0, 13.0, 16.0, 200.0])
def test_terms_that_depend_on_one_end_only_are_stored_separately(semiring, bias):
    """Tables of three to eight states are stored without their last row and column."""
    for states in (3, 4, 7):
        field = ring(states, 5.0, torch.float64)
        generator = torch.Generator().manual_seed(2)
        ends = torch.rand(2, field.num_edges, states, generator=generator, dtype=torch.float64).mul_(2).sub_(1)
        edge = field.edge + bias * (ends[0][:, :, None] + ends[1][:, None, :])
        start = torch.randn(2 * field.num_edges, states, generator=generator, dtype=torch.float64)
        for dtype, atol in ((torch.float64, 1e-9), (torch.float32, 2e-3)):
            each = PairwiseField(field.edge_index, field.node.to(dtype), edge.to(dtype))
            for options in (
                {"tolerance": 0.0, "max_sweeps": 7},
                {"tolerance": 0.0, "max_sweeps": 4, "start": start.to(dtype), "damping": 0.3, "edge_appearance": 0.8},
            ):
                expected = propagate(each, semiring, backend="reference", **options)
                found = propagate(each, semiring, backend="native", **options)
                assert_close(found.messages, expected.messages, rtol=1e-5, atol=atol)
                assert_close(found.residual, expected.residual, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 9])
def test_the_exact_change_is_reported_for_the_last_sweep(semiring, states):
    """On a graph that is split into tiles, for any number of sweeps, whether or not the last is known beforehand."""
    generator = torch.Generator().manual_seed(3)
    nodes, edges = 1500, 4000
    index = torch.randint(0, nodes, (2, edges), generator=generator)
    index = torch.unique(torch.sort(index[:, index[0] != index[1]], dim=0).values, dim=1)
    node = torch.randn(nodes, states, generator=generator, dtype=torch.float64)
    edge = 0.3 * torch.randn(index.shape[1], states, states, generator=generator, dtype=torch.float64)
    field = PairwiseField(index, node, edge)
    changes = []
    for sweeps in range(1, 7):
        options = {"max_sweeps": sweeps, "tolerance": 0.0}
        expected = propagate(field, semiring, backend="reference", **options).residual
        assert_close(propagate(field, semiring, backend="native", **options).residual, expected, rtol=0, atol=1e-10)
        changes.append(float(expected))
    for tolerance in [(before + after) / 2 for before, after in zip(changes, changes[1:], strict=False)]:
        options = {"max_sweeps": 50, "tolerance": tolerance}
        expected = propagate(field, semiring, backend="reference", **options)
        found = propagate(field, semiring, backend="native", **options)
        assert int(found.sweeps) == int(expected.sweeps)
        assert_close(found.residual, expected.residual, rtol=0, atol=1e-10)


def test_clamped_labels_are_solved_the_quickest_way():
    field = ring(3, 5.0, torch.float64)
    labels = torch.full((40,), -1)
    labels[::5] = 2
    clamped = field.clamp(labels)
    expected = propagate(clamped, backend="reference", max_sweeps=30)
    assert_close(propagate(clamped, backend="native", max_sweeps=30).messages, expected.messages, rtol=0, atol=1e-9)


def test_nodes_and_edges_of_a_batch_may_be_in_any_order():
    """Large graphs are split into tiles, small ones are bundled; nodes of a graph are mixed with those of others."""
    field = random_field(1800, 7500, 3, graphs=3, scale=0.5)
    generator = torch.Generator().manual_seed(0)
    few = torch.combinations(torch.arange(80))  # 3160 edges
    nodes = torch.randperm(1980, generator=generator)
    place = nodes.argsort()
    index = torch.cat([field.edge_index, few.T + 1800], 1)
    edge = torch.cat([field.edge, torch.randn(len(few), 3, 3, generator=generator, dtype=torch.float64) / 80])
    node = torch.cat([field.node, torch.randn(180, 3, generator=generator, dtype=torch.float64)])
    graph = torch.cat([field.graph, torch.full((80,), 3), torch.arange(100) // 4 + 4])  # and some without edges
    order = torch.randperm(index.shape[1], generator=generator)
    mixed = PairwiseField(place[index[:, order]], node[nodes], edge[order], graph[nodes])
    assert_same(mixed, "native", max_sweeps=6, tolerance=1e-2)


def test_many_edges_are_sorted_by_several_threads():
    field = random_field(4000, 2**18 + 77, 2, scale=0.3, dtype=torch.float32)
    expected = propagate(field, max_sweeps=2, tolerance=0.0, backend="reference")
    before, messages = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            messages.append(propagate(field, max_sweeps=2, tolerance=0.0, backend="native").messages)
    finally:
        torch.set_num_threads(before)
    assert_close(messages[0], expected.messages, rtol=0, atol=1e-4)
    assert torch.equal(messages[0], messages[1])
    assert_close(messages[2], messages[0], rtol=0, atol=1e-5)
