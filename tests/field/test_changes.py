"""Fields notice that their tensors were changed, and refuse sizes that no memory holds."""

import pytest
import torch
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.errors import FieldError, InputError, TooLargeError
from accord.field._changes import dense
from accord.graphs import topology

HUGE = 10**12


def chain(nodes=5, states=3, **more):
    index = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    return PairwiseField(index, torch.randn(nodes, states), torch.randn(nodes - 1, states, states), **more)


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_potentials_changed_in_place_count(backend):
    field = chain()
    propagate(field, backend=backend)
    field.node.mul_(2.0)
    field.edge.add_(torch.randn_like(field.edge))
    fresh = PairwiseField(field.edge_index.clone(), field.node.clone(), field.edge.clone())
    assert_close(propagate(field, backend=backend).node, propagate(fresh, backend=backend).node)


def test_graphs_changed_in_place_count():
    """A forest that becomes a ring needs other sweeps."""
    field = chain(states=2)
    assert field.peeling.is_forest
    field.edge_index.copy_(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))
    fresh = PairwiseField(field.edge_index.clone(), field.node, field.edge)
    assert_close(propagate(field).messages, propagate(fresh).messages)
    assert not field.peeling.is_forest


@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_bad_changes_are_refused(backend):
    field = chain()
    field.edge[1, 2, 0] = torch.nan
    with pytest.raises(FieldError, match=r"propagate: .* changed after it was built.*NaN .*\[1, 2, 0\]"):
        propagate(field, backend=backend)
    field.edge[1, 2, 0] = 0.0
    propagate(field, backend=backend)
    field.node.resize_(2, 3)
    with pytest.raises(InputError, match="changed after it was built"):
        propagate(field, backend=backend)


def test_unchanged_fields_are_not_checked_again(monkeypatch):
    field = chain().clamp(torch.tensor([0, -1, -1, -1, 1]))
    monkeypatch.setattr("accord.field._field.check_forms", None)
    propagate(field)


def test_fields_of_inference_mode():
    with torch.inference_mode():
        field = chain()
        expected = propagate(field).node
    assert_close(propagate(field).node, expected)


@pytest.mark.parametrize("count", [2**30 + 1, 2**31, 2**31 - 1, 3 * 10**9])
def test_graph_counts_beyond_32_bits_are_refused(count):
    with pytest.raises(TooLargeError, match="num_graphs"):
        chain(num_graphs=count)


def test_memory_for_graphs_without_nodes_is_refused_before_it_is_taken(monkeypatch):
    monkeypatch.setattr("accord.graphs._checks.available_memory", lambda device: 2**32)
    with pytest.raises(TooLargeError, match="1073741824 graphs"):
        propagate(chain(num_graphs=2**30))


@pytest.mark.parametrize(
    ("index", "node", "edge"),
    [
        ((2, 1), (HUGE, 3), (1, 3, 3)),
        ((2, HUGE), (4, 3), (HUGE, 3, 3)),
        ((2, HUGE), (4, 3), (1, 3, 3)),
        ((2, 1), (4, 3), (HUGE, 3, 3)),
        ((2, HUGE), (HUGE, 3), (HUGE, 3, 3)),
    ],
)
def test_expanded_sizes_are_refused_before_memory_is_taken(index, node, edge):
    first = torch.tensor([[0], [1]]).expand(index)
    with pytest.raises((TooLargeError, FieldError)):
        PairwiseField(first, torch.zeros(1, 1).expand(node), torch.zeros(1, 1, 1).expand(edge))


def test_replicas_that_only_claim_memory_are_refused():
    field = chain()
    wide = PairwiseField(field.edge_index, field.node.expand(HUGE, 5, 3), field.edge)
    with pytest.raises(TooLargeError, match="replicas"):
        propagate(wide)
    crossed = PairwiseField(
        field.edge_index, field.node.expand(10**6, 1, 5, 3), field.edge.expand(1, 10**6, *field.edge.shape)
    )
    with pytest.raises(TooLargeError, match="replicas"):
        crossed.expanded()


def test_a_topology_that_only_claims_memory_is_refused():
    with pytest.raises(TooLargeError, match="columns of edge_index"):
        topology(torch.tensor([[0], [1]]).expand(2, HUGE), 2)


def test_numbers_of_expanded_tensors_are_checked_once():
    table = torch.randn(3, 3)
    assert dense(table.expand(7, 2, 3, 3)).shape == (1, 1, 3, 3)
    assert dense(torch.zeros(2, 0, 3)).shape == (2, 0, 3)
    table[1, 2] = torch.inf
    with pytest.raises(FieldError, match=r"\+inf \(4 bad entries, the first at \[0, 1, 2\]\)"):
        PairwiseField(chain().edge_index, torch.zeros(5, 3), table.expand(4, 3, 3))
