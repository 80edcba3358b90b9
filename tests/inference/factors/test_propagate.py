"""Truths about propagation on fields with factors, checked against enumeration in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factor_cases import DTYPE, enumerated, factor_fields, side_by_side
from support.strategies import fields
from torch.testing import assert_close

from accord import FactorField, OrFactors, PairwiseField, TableFactors, propagate
from accord.errors import InfeasibleError, InputTypeError, OptionError

EXACT = {"rtol": 0, "atol": 1e-9}


def finite(values):
    return values.nan_to_num(neginf=-1e3)


@given(factor_fields(tree=True, barred=0.1), st.sampled_from(["sum", "max"]))
def test_trees_of_factors_are_exact(field, semiring):
    total, node = enumerated(field, semiring)
    if bool((total == -torch.inf).any()):
        with pytest.raises(InfeasibleError):
            propagate(field, semiring=semiring)
        return
    beliefs = propagate(field, semiring=semiring, backend="reference")
    assert bool(beliefs.converged.all())
    assert_close(finite(beliefs.node), finite(node), **EXACT)
    if semiring == "sum":
        assert_close(beliefs.log_partition[..., 0], total, **EXACT)


@given(factor_fields(tree=True))
def test_beliefs_of_factors_marginalise_to_those_of_their_variables(field):
    beliefs = propagate(field, backend="reference")
    for group, table in zip(field.groups, beliefs.factors, strict=True):
        if table is None:
            continue
        for axis in range(group.order):
            others = [table.dim() - group.order + other for other in range(group.order) if other != axis]
            marginal = table.exp().sum(others) if others else table.exp()
            expected = beliefs.node[..., group.scope[:, axis], : marginal.shape[-1]].exp()
            assert_close(marginal, expected, **EXACT)


@given(fields(), st.sampled_from(["sum", "max"]), st.sampled_from([0.0, 0.4]), st.sampled_from([1.0, 0.6]))
@settings(max_examples=50)
def test_edges_as_factors_give_what_the_pairwise_reference_gives(field, semiring, damping, appearance):
    factors = FactorField(field.node, [TableFactors(field.edge_index.t(), field.edge)])
    options = {"semiring": semiring, "damping": damping, "edge_appearance": appearance, "backend": "reference"}
    expected, found = propagate(field, **options), propagate(factors, **options)
    assert_close(found.node, expected.node, **EXACT)
    assert torch.equal(found.sweeps, expected.sweeps)
    if semiring == "sum":
        assert_close(found.log_partition, expected.log_partition, **EXACT)
        assert_close(found.factors[0], expected.edge, **EXACT)


@given(factor_fields(replicas=((),)), factor_fields(replicas=((),)))
def test_a_batch_equals_its_graphs(one, two):
    both = propagate(side_by_side([one, two]), max_sweeps=20, backend="reference")
    first, second = (propagate(part, max_sweeps=20, backend="reference") for part in (one, two))
    assert both.sweeps.tolist() == [*first.sweeps.tolist(), *second.sweeps.tolist()]
    width = one.num_states
    assert_close(finite(both.node[: one.num_nodes, :width]), finite(first.node), **EXACT)
    assert_close(both.log_partition, torch.cat([first.log_partition, second.log_partition]), **EXACT)


@given(factor_fields(max_nodes=5, replicas=((),)))
@settings(max_examples=30)
def test_weights_of_forests_give_an_upper_bound(field):
    beliefs = propagate(field, edge_appearance="spanning", damping=0.3, max_sweeps=3000, backend="reference")
    if bool(beliefs.converged.all()):
        assert float(beliefs.log_partition) >= float(enumerated(field)[0]) - 1e-6


def loop(generator):
    """Three ternary factors on a ring of six variables, and a rule."""
    scope = torch.tensor([[0, 1, 2], [2, 3, 4], [4, 5, 0]])
    tables = torch.randn(3, 2, 2, 2, generator=generator, dtype=DTYPE)
    return torch.randn(6, 2, generator=generator, dtype=DTYPE), scope, tables


@pytest.mark.parametrize("options", [{}, {"damping": 0.3}, {"max_sweeps": 4, "tolerance": 0.0}])
def test_gradients_match_finite_differences(options):
    node, scope, tables = loop(torch.Generator().manual_seed(1))
    node, tables = node.requires_grad_(), tables.requires_grad_()

    def outcome(node, tables):
        field = FactorField(node, [TableFactors(scope, tables), OrFactors(torch.tensor([[1, 3, 5]]))])
        beliefs = propagate(field, **options)
        return beliefs.log_partition, beliefs.node.exp()

    assert torch.autograd.gradcheck(outcome, (node, tables), atol=1e-6)


def test_gradients_of_the_partition_function_are_marginals_on_trees():
    generator = torch.Generator().manual_seed(0)
    node = torch.randn(5, 3, generator=generator, dtype=DTYPE, requires_grad=True)
    tables = torch.randn(2, 3, 3, 3, generator=generator, dtype=DTYPE, requires_grad=True)
    beliefs = propagate(FactorField(node, [TableFactors(torch.tensor([[0, 1, 2], [2, 3, 4]]), tables)]))
    by_node, by_table = torch.autograd.grad(beliefs.log_partition.sum(), [node, tables])
    assert_close(by_node, beliefs.node.exp(), **EXACT)
    assert_close(by_table, beliefs.factors[0].exp(), **EXACT)


def test_a_run_continues_from_messages():
    node, scope, tables = loop(torch.Generator().manual_seed(2))
    field = FactorField(node, [TableFactors(scope, tables)])
    whole = propagate(field)
    half = propagate(field, max_sweeps=3)
    assert_close(propagate(field, start=half).node, whole.node, **EXACT)
    with pytest.raises(InputTypeError, match="not beliefs of a field with factors"):
        propagate(field, start="messages")


def test_beliefs_of_ragged_fields_by_edge():
    generator = torch.Generator().manual_seed(3)
    node = [torch.randn(size, generator=generator, dtype=DTYPE) for size in (2, 4, 3)]
    edge = [torch.randn(2, 4, generator=generator, dtype=DTYPE), torch.randn(4, 3, generator=generator, dtype=DTYPE)]
    field = PairwiseField.ragged(torch.tensor([[0, 1], [1, 2]]), node, edge)
    beliefs = propagate(field)
    total, expected = enumerated(field)
    assert_close(finite(beliefs.node), finite(expected), **EXACT)
    assert_close(beliefs.log_partition[0], total, **EXACT)
    assert [list(table.shape) for table in beliefs.edge] == [[2, 4], [4, 3]]
    assert_close(beliefs.edge[0].exp().sum(0), beliefs.node[1, :4].exp(), **EXACT)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"edge_appearance": 0.0}, "must lie in (0, 1]"),
        ({"edge_appearance": torch.ones(5)}, "[factors] = [3]"),
        ({"edge_appearance": "tree"}, "unknown"),
        ({"backend": "triton"}, "cannot solve fields with factors"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words):
    node, scope, tables = loop(torch.Generator().manual_seed(2))
    with pytest.raises(OptionError) as raised:
        propagate(FactorField(node, [TableFactors(scope, tables)]), **options)
    assert words in str(raised.value)
