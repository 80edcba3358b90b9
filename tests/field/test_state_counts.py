"""Pairwise fields whose nodes have different numbers of states, padded and unpadded, in every kernel."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DTYPE, edge_lists
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, maximise, propagate
from accord.errors import FieldError, InfeasibleError, InputTypeError
from accord.field.factors import RaggedField
from accord.inference import eliminate_beliefs, sample_exact, sample_gibbs


@st.composite
def mixed_fields(draw, tree=False):
    """The same field twice: padded with numbers that must not matter, and without padding."""
    num_nodes = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(1, 4), min_size=num_nodes, max_size=num_nodes))
    edge_index = draw(edge_lists(num_nodes, tree=tree))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    node = torch.randn(num_nodes, 4, generator=generator, dtype=DTYPE)
    edge = torch.randn(edge_index.shape[1], 4, 4, generator=generator, dtype=DTYPE)
    padded = PairwiseField(edge_index, node, edge, num_states=torch.tensor(counts))
    rows = [node[v, :count] for v, count in enumerate(counts)]
    tables = [edge[e, : counts[s], : counts[t]] for e, (s, t) in enumerate(edge_index.t().tolist())]
    return padded, PairwiseField.ragged(edge_index, rows, tables)


def finite(values):
    return values.nan_to_num(neginf=-1e3)


@given(mixed_fields(), st.sampled_from(["sum", "max"]))
def test_both_forms_have_the_same_exact_beliefs(pair, semiring):
    padded, ragged = pair
    width = ragged.num_states
    expected = enumerate_beliefs(padded, semiring)
    for found in (enumerate_beliefs(ragged, semiring), eliminate_beliefs(ragged, semiring)):
        assert_close(finite(found.node), finite(expected.node[..., :width]))
        assert_close(found.log_partition, expected.log_partition)
    assert_close(eliminate_beliefs(padded, semiring).log_partition, expected.log_partition)
    assert bool((expected.node[..., width:] == -torch.inf).all())


@pytest.mark.parametrize("backend", ["reference", "native"])
@pytest.mark.parametrize("schedule", ["synchronous", "sequential", "residual"])
@settings(max_examples=25)
@given(pair=mixed_fields(tree=True))
def test_propagation_is_exact_on_forests_in_every_kernel(pair, backend, schedule):
    padded, ragged = pair
    exact = enumerate_beliefs(padded)
    beliefs = propagate(padded, backend=backend, schedule=schedule)
    assert_close(finite(beliefs.node), finite(exact.node))
    if backend == "native" or schedule == "synchronous":
        unpadded = propagate(ragged, backend=backend, schedule=schedule)
        assert_close(finite(unpadded.node), finite(exact.node[..., : ragged.num_states]))
        assert_close(unpadded.log_partition, exact.log_partition)


@given(mixed_fields())
def test_labels_lie_within_the_states_of_each_node(pair):
    best = enumerate_beliefs(pair[0], "max").log_partition
    for field in pair:
        assert_close(maximise(field).score, best)
        labels = propagate(field, semiring="max").decode()
        assert bool((labels < field.states).all())
        for drawn in (sample_exact(field, 5), sample_gibbs(field, 5, sweeps=3)):
            assert bool((drawn < field.states).all())


def test_masked_states_get_no_gradient():
    node = torch.randn(3, 4, dtype=DTYPE, requires_grad=True)
    edge = torch.randn(2, 4, 4, dtype=DTYPE, requires_grad=True)
    counts = torch.tensor([2, 4, 3])
    field = PairwiseField(torch.tensor([[0, 1], [1, 2]]), node, edge, num_states=counts)
    beliefs = propagate(field)
    by_node, by_edge = torch.autograd.grad(beliefs.log_partition.sum(), [node, edge])
    assert_close(by_node, beliefs.node.exp())
    assert float(by_node[0, 2:].abs().max()) == 0.0 and float(by_edge[0, 2:].abs().max()) == 0.0


def test_counts_stay_with_the_field():
    field = PairwiseField(
        torch.tensor([[0], [1]]), torch.zeros(2, 3), torch.zeros(1, 3, 3), num_states=torch.tensor([2, 3])
    )
    assert field.num_states == 3 and field.states.tolist() == [2, 3]
    for other in (
        field.with_potentials(node=torch.ones(2, 3)),
        field.to(torch.float64),
        field.clamp(torch.tensor([-1, 1])),
    ):
        assert other.states.tolist() == [2, 3] and float(other.node[0, 2]) == -torch.inf
    plain = PairwiseField(torch.tensor([[0], [1]]), torch.zeros(2, 3), torch.zeros(1, 3, 3))
    assert plain.states.tolist() == [3, 3]
    with pytest.raises(FieldError, match="runs from 0 to 3"):
        PairwiseField(
            torch.tensor([[0], [1]]), torch.zeros(2, 3), torch.zeros(1, 3, 3), num_states=torch.tensor([0, 3])
        )


@st.composite
def forbidden_pairs(draw, padded, ragged):
    """Arguments of `forbid`: pairs of states that some node has, and perhaps the edges that they apply to."""
    state = st.integers(0, ragged.num_states - 1)
    pairs = draw(st.lists(st.tuples(state, state), max_size=4))
    columns = st.none() if not padded.num_edges else st.none() | st.lists(st.integers(0, padded.num_edges - 1))
    edges = draw(columns)
    return pairs, None if edges is None else torch.tensor(edges, dtype=torch.long), draw(st.booleans())


@given(mixed_fields(), st.data())
def test_pairs_are_forbidden_as_in_the_padded_field(pair, data):
    padded, ragged = pair
    arguments = data.draw(forbidden_pairs(padded, ragged))
    padded, ragged = padded.forbid(*arguments), ragged.forbid(*arguments)
    assert isinstance(ragged, RaggedField)
    counts = padded.states.tolist()
    for edge, ((source, target), table) in enumerate(zip(padded.edge_index.t().tolist(), ragged.edge, strict=True)):
        assert torch.equal(table, padded.edge[edge, : counts[source], : counts[target]])
    try:
        expected = enumerate_beliefs(padded)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            enumerate_beliefs(ragged)
        return
    assert_close(finite(eliminate_beliefs(ragged).node), finite(expected.node[..., : ragged.num_states]))


def test_forbidden_pairs_keep_replicas_and_gradients():
    node = [torch.zeros(2, 2), torch.zeros(2, 3)]
    table = torch.zeros(2, 2, 3, requires_grad=True)
    field = PairwiseField.ragged(torch.tensor([[0], [1]]), node, [table]).forbid([(0, 1), (2, 1)])
    barred = torch.tensor([[False, True, False], [True, False, True]])
    assert torch.equal(field.edge[0] == -torch.inf, barred.expand(2, 2, 3))
    field.edge[0].nan_to_num(neginf=0.0).sum().backward()
    assert torch.equal(table.grad, (~barred).float().expand(2, 2, 3))


def test_pairs_that_cannot_be_forbidden_are_named():
    field = PairwiseField.ragged(torch.tensor([[0], [1]]), [torch.zeros(2), torch.zeros(3)], [torch.zeros(2, 3)])
    assert field.forbid([]) is field
    with pytest.raises(FieldError, match=r"RaggedField.forbid: pairs name states 0 to 3; the field has states 0 to 2"):
        field.forbid([(0, 3)])
    with pytest.raises(FieldError, match="columns of edge_index are 0 to 0"):
        field.forbid([(0, 1)], edges=torch.tensor([1]))
    with pytest.raises(InputTypeError, match="does not hold pairs"):
        field.forbid([0, 1])
