"""The compiled kernel's own ways: which of them a field takes must not show, and what it needs is said beforehand."""

import pytest
import torch
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.inference.kernels import _native

pytestmark = pytest.mark.skipif(_native.unavailable() is not None, reason="no compiled kernel")


def ring(states, scale, dtype, nodes=40, seed=0):
    """A ring with chords: the ways differ in what spans they take, so one table is as wide as asked for."""
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
@pytest.mark.parametrize("span", [20.0, 29.0, 33.0, 59.0, 61.0, 80.0, 290.0, 310.0, 650.0])
def test_spans_on_either_side_of_every_way(states, span):
    """Ratios, logs, and log space take over from each other; none of it may show."""
    for dtype, atol in ((torch.float64, 1e-9), (torch.float32, 1e-3)):
        field = ring(states, span, dtype)
        options = {"max_sweeps": 12, "tolerance": 0.0}
        expected = propagate(field, backend="reference", **options)
        found = propagate(field, backend="native", **options)
        assert_close(found.messages, expected.messages, rtol=1e-5, atol=atol)
        assert_close(found.residual, expected.residual, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("states", [2, 3, 9])
def test_potentials_far_apart_meet_tables_at_the_edge_of_the_quickest_way(states):
    """Totals beyond any float, less the one message that brought them there."""
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
def test_messages_to_start_from_may_be_far_apart(states, far):
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


def test_clamped_labels_do_not_leave_the_quickest_way():
    field = ring(3, 5.0, torch.float64)
    labels = torch.full((40,), -1)
    labels[::5] = 2
    clamped = field.clamp(labels)
    expected = propagate(clamped, backend="reference", max_sweeps=30)
    assert_close(propagate(clamped, backend="native", max_sweeps=30).messages, expected.messages, rtol=0, atol=1e-9)
