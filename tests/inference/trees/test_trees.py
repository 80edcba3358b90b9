"""The compiled passes over forests: labels as in torch to the bit, log Z and marginals as by enumeration."""

import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import DTYPE, edge_lists, fields, union
from torch.testing import assert_close

from accord import FactorField, OrFactors, PairwiseField, TableFactors, enumerate_beliefs, propagate
from accord.errors import FieldError, InfeasibleError, OptionError
from accord.field.factors import flatten
from accord.inference import eliminate_beliefs, search, trees
from accord.inference.decoding import _decoding
from accord.inference.factors import _beliefs
from accord.inference.trees import _native

pytestmark = pytest.mark.skipif(not _native.available(), reason="there is no C++ compiler")
FORESTS = fields(max_nodes=8, tree=True, ties=True) | fields(max_nodes=8, tree=True)
BARRED = fields(max_nodes=8, tree=True, ties=True, barred=0.2)
WIDE = fields(max_nodes=4, min_states=4, max_states=9, tree=True) | fields(4, 4, 9, tree=True, barred=0.2)


def decoded(field, beliefs, compiled):
    """Labels, or the error, with and without the kernel."""
    with pytest.MonkeyPatch.context() as patch:
        if not compiled:
            patch.setattr(_decoding, "best_labels", lambda *_: None)
        try:
            return _decoding.decode(field, beliefs).tolist()
        except InfeasibleError as error:
            return str(error), error.nodes, error.proved


def wishes(field):
    """Beliefs with many ties."""
    shape = (*field.replicas, field.num_nodes, field.num_states)
    return torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(0)).to(field.node)


@given(FORESTS | BARRED | WIDE, st.sampled_from([torch.float32, torch.float64]))
def test_labels_are_those_of_the_plain_version_to_the_bit(field, dtype):
    field = field.to(dtype)
    assert decoded(field, wishes(field), True) == decoded(field, wishes(field), False)


@given(st.lists(fields(max_nodes=5, tree=True, min_states=3, max_states=3, replicas=((2,),)), min_size=2, max_size=4))
def test_batches_and_replicas_decode_alike(parts):
    field = union(parts)
    assert decoded(field, wishes(field), True) == decoded(field, wishes(field), False)


@pytest.mark.parametrize("replicas", [(), (2,)])
def test_rounding_around_a_hub_is_that_of_the_plain_version(replicas):
    generator = torch.Generator().manual_seed(0)
    index = torch.stack([torch.randint(0, 3, (4000,), generator=generator), torch.arange(3, 4003)])
    index = torch.cat([index, torch.tensor([[0, 2], [1, 0]])], 1)
    node = 1e3 * torch.randn(*replicas, 4003, 2, generator=generator)
    field = PairwiseField(index, node, 1e-3 * torch.randn(4002, 2, 2, generator=generator))
    assert decoded(field, wishes(field), True) == decoded(field, wishes(field), False)


@given(FORESTS)
def test_decoding_a_forest_needs_nothing_but_the_kernel(field):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_decoding, "_fold", None)
        labels = propagate(field).decode()
    best = enumerate_beliefs(field, "max").log_partition
    assert_close(field.score(labels), best, rtol=0, atol=1e-9)


@given(FORESTS | BARRED | WIDE)
def test_log_partition_and_gradient_are_exact(field):
    try:
        exact = enumerate_beliefs(field)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field)
        return
    leaves = [values.clone().requires_grad_() for values in field.expanded()]
    totals = trees.log_partition(trees.Pairs.of(field, *leaves))
    count = field.replicas.numel()
    assert_close(totals, exact.log_partition.reshape(count, -1), rtol=0, atol=1e-9)
    weight = torch.arange(1.0, count + 1, dtype=DTYPE)
    node, edge = torch.autograd.grad((weight[:, None] * totals).sum(), leaves, allow_unused=True)
    assert_close(node, weight[:, None, None] * exact.node.exp().reshape(node.shape), rtol=0, atol=1e-9)
    expected = weight[:, None, None, None] * exact.edge.exp().reshape(leaves[1].shape)
    assert_close(edge, expected, rtol=0, atol=1e-9)


@given(fields(max_nodes=7, tree=True), st.sampled_from([torch.float32, torch.float64]), st.booleans())
def test_propagation_on_forests_agrees_with_the_bethe_formula(field, dtype, shared):
    field = field.to(dtype)
    node = field.node.requires_grad_()
    edge = (field.edge[0].clone() if shared and field.replicas else field.edge).requires_grad_()
    field = field.with_potentials(node, edge)
    values, gradients = [], []
    for formula in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if formula:
                patch.setattr(trees, "log_partition", lambda *_: None)
            values.append(propagate(field).log_partition)
        gradients.append(torch.autograd.grad(values[-1].sum(), [node, edge], allow_unused=not field.num_edges))
    close = {"rtol": 0, "atol": 1e-4 if dtype == torch.float32 else 1e-9}
    assert_close(*values, **close)
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other if other is not None else torch.zeros_like(one), **close)


def path(length, states=3, **more):
    generator = torch.Generator().manual_seed(1)
    index = torch.stack([torch.arange(length - 1), torch.arange(1, length)])
    node = torch.randn(length, states, generator=generator, dtype=DTYPE)
    return PairwiseField(index, node, torch.randn(length - 1, states, states, generator=generator, dtype=DTYPE), **more)


@pytest.mark.parametrize(
    "options",
    [
        {"max_sweeps": 1},
        {"edge_appearance": 0.7},
        {"tolerance": 0.5, "max_sweeps": 2},
        {"tolerance": 0.0, "max_sweeps": 3},
        {"backend": "reference"},
        {"start": torch.zeros(10, 3, dtype=DTYPE, requires_grad=True)},
        {"edge_appearance": torch.ones(5, dtype=DTYPE, requires_grad=True)},
    ],
    ids=str,
)
def test_other_runs_keep_the_formula_in_terms_of_their_messages(options, monkeypatch):
    def refused(*_):
        raise AssertionError("the kernel must not be asked")

    monkeypatch.setattr(trees, "log_partition", refused)
    assert bool(propagate(path(6), **options).log_partition.isfinite().all())
    with pytest.raises(AssertionError, match="must not be asked"):
        _ = propagate(path(6)).log_partition  # or the test shows nothing


def test_loops_are_left_to_others():
    index = torch.tensor([[0, 1, 2], [1, 2, 0]])  # and three nodes more, so that there are fewer edges than nodes
    field = PairwiseField(index, torch.randn(6, 2), torch.randn(3, 2, 2))
    node, edge = field.expanded()
    pairs = trees.Pairs.of(field, node, edge)
    assert _native.fits(pairs)
    assert trees.best_labels(pairs, node) is None and trees.log_partition(pairs) is None
    beliefs = propagate(field)
    assert bool(beliefs.log_partition.isfinite()) and len(beliefs.decode()) == 6


def test_what_the_kernel_cannot_read_is_left_to_others(monkeypatch):
    field = path(4)
    node, edge = field.expanded()
    field.edge_index[1, 0] = 9  # as numpy could change it, unseen
    assert trees.log_partition(trees.Pairs.of(field, node, edge)) is None
    batch = path(4, graph=torch.zeros(4, dtype=torch.long), num_graphs=2)
    batch.graph[0] = -1
    assert trees.log_partition(trees.Pairs.of(batch, node, edge)) is None
    monkeypatch.setattr(_native, "available", lambda: False)
    assert trees.best_labels(trees.Pairs.of(path(4), node, edge), node) is None


def test_potentials_need_not_be_contiguous():
    field = path(7)
    turned = field.with_potentials(field.node.t().contiguous().t(), field.edge.flip(0).flip(0).mT.contiguous().mT)
    assert not turned.node.is_contiguous() and not turned.edge.is_contiguous()
    assert_close(propagate(turned).log_partition, eliminate_beliefs(field).log_partition)
    assert torch.equal(propagate(turned).decode(), propagate(field).decode())


def test_second_derivatives_are_refused():
    field = path(3)
    node = field.node.clone().requires_grad_()
    total = propagate(field.with_potentials(node)).log_partition.sum()
    with pytest.raises(OptionError, match="first derivatives only"):
        torch.autograd.grad(total, node, create_graph=True)


def test_graphs_that_change_before_the_gradient_are_noticed():
    field = path(3)
    node = field.node.clone().requires_grad_()
    total = propagate(field.with_potentials(node)).log_partition.sum()
    field.edge_index[1, 0] = 7
    with pytest.raises(FieldError, match="changed before the gradient"):
        total.backward()


def test_a_path_of_100_000_nodes_takes_no_python_loop():
    field = path(100_000, states=2)
    beliefs = propagate(field)
    begun = time.process_time()
    labels, total = beliefs.decode(), beliefs.log_partition
    assert time.process_time() - begun < 1.5  # in rounds of peeling it took 10 s and more
    exact = eliminate_beliefs(field, "max")
    assert_close(field.score(labels), exact.log_partition)
    assert_close(total, eliminate_beliefs(field).log_partition)


def test_large_potentials_are_summed_in_logs():
    node = torch.tensor([[900.0, -900.0], [-1200.0, 800.0], [1e6, 0.0]], dtype=DTYPE)
    edge = torch.tensor([[[1e5, -torch.inf], [-1e5, 3e5]], [[-torch.inf, 700.0], [-800.0, 0.0]]], dtype=DTYPE)
    field = PairwiseField(torch.tensor([[0, 2], [1, 1]]), node, edge)
    exact = enumerate_beliefs(field)
    leaves = [values.clone().requires_grad_() for values in field.expanded()]
    total = trees.log_partition(trees.Pairs.of(field, *leaves))
    assert_close(total[0], exact.log_partition)
    by_node, by_edge = torch.autograd.grad(total.sum(), leaves)
    assert_close(by_node[0], exact.node.exp())
    assert_close(by_edge[0], exact.edge.exp())


@st.composite
def ragged_forests(draw, barred=0.0):
    num_nodes = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(1, 5), min_size=num_nodes, max_size=num_nodes))
    edge_index = draw(edge_lists(num_nodes, tree=True))
    lead = draw(st.sampled_from([(), (2,)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    ties = draw(st.booleans())

    def potentials(*shape):
        values = torch.randn(*lead, *shape, generator=generator, dtype=DTYPE)
        values = values.round() if ties else values
        return values.masked_fill(torch.rand(values.shape, generator=generator) < barred, -torch.inf)

    tables = [potentials(counts[s], counts[t]) for s, t in edge_index.t().tolist()]
    return PairwiseField.ragged(edge_index, [potentials(count) for count in counts], tables)


@given(ragged_forests() | ragged_forests(barred=0.15))
def test_nodes_with_states_of_their_own_are_solved_exactly(field):
    try:
        exact, best = enumerate_beliefs(field), enumerate_beliefs(field, "max").log_partition
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field).decode()
        return
    beliefs = propagate(field)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "decode_factors", None)  # the kernel is all that is needed
        patch.setattr(_beliefs, "factor_partition", None)
        assert_close(beliefs.log_partition, exact.log_partition, rtol=0, atol=1e-9)
        labels = beliefs.decode()
    assert bool((labels < field.states).all())
    assert_close(field.score(labels), best, rtol=0, atol=1e-9)


def test_other_factors_are_left_to_others():
    node = torch.zeros(3, 2)
    triple = FactorField(node, [TableFactors(torch.tensor([[0, 1, 2]]), torch.zeros(1, 2, 2, 2))])
    rule = FactorField(node, [OrFactors(torch.tensor([[0, 1]]))])
    twice = FactorField(node, [TableFactors(torch.tensor([[0, 1], [1, 0]]), torch.randn(2, 2, 2))])
    assert trees.Pairs.of_flat(flatten(triple)) is None
    assert trees.Pairs.of_flat(flatten(rule, keep_rules=True)) is None and trees.Pairs.of_flat(flatten(rule)) is None
    pairs = trees.Pairs.of_flat(flatten(twice))
    assert _native.fits(pairs) and trees.log_partition(pairs) is None  # two edges between two nodes are a loop


def test_factors_that_share_a_table_are_read_from_it():
    scope = torch.tensor([[0, 1], [2, 1], [2, 3]])
    field = FactorField(torch.randn(2, 4, 3, dtype=DTYPE), [TableFactors(scope, torch.randn(1, 3, 3, dtype=DTYPE))])
    beliefs = propagate(field)
    assert_close(beliefs.log_partition, enumerate_beliefs(field).log_partition, rtol=0, atol=1e-9)
    best = enumerate_beliefs(field, "max").log_partition
    assert_close(field.score(beliefs.decode()), best, rtol=0, atol=1e-9)


@given(ragged_forests() | ragged_forests(barred=0.15), st.booleans())
def test_gradients_of_ragged_fields_are_their_marginals(field, shared):
    values = [group.values for group in field.groups]
    if shared and field.replicas:  # tables that all replicas share
        values = [table[0] for table in values]
    leaves = [values.clone().requires_grad_() for values in (field.node, *values)]
    field = field.with_potentials(leaves[0], leaves[1:])
    try:
        exact = enumerate_beliefs(field)
    except InfeasibleError:
        return
    beliefs = propagate(field)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_beliefs, "factor_partition", None)
        total = beliefs.log_partition
    found = torch.autograd.grad(total.sum(), leaves, allow_unused=True, materialize_grads=True)
    assert_close(found[0], exact.node.detach().exp(), rtol=0, atol=1e-9)
    for gradient, table in zip(found[1:], exact.factors, strict=True):
        table = table.detach().exp()
        assert_close(gradient, table.sum(0) if table.dim() > gradient.dim() else table, rtol=0, atol=1e-9)


def test_gradients_of_shared_tables_agree_with_elimination():
    scope = torch.tensor([[0, 1], [2, 1], [2, 3]])
    node = torch.randn(4, 3, dtype=DTYPE)
    table = torch.randn(1, 3, 3, dtype=DTYPE, requires_grad=True)
    field = FactorField(node, [TableFactors(scope, table)])
    assert trees.log_partition(trees.Pairs.of_flat(flatten(field))) is None
    (found,) = torch.autograd.grad(propagate(field).log_partition.sum(), table)
    (expected,) = torch.autograd.grad(eliminate_beliefs(field).log_partition.sum(), table)
    assert_close(found, expected, rtol=0, atol=1e-8)
