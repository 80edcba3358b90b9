"""A prepared solver of a field with factors gives what `propagate` gives, to the bit, for every call."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factor_cases import factor_fields
from support.strategies import DTYPE, edge_lists
from torch.testing import assert_close

from accord import FactorField, OrFactors, PairwiseField, TableFactors, propagate
from accord.errors import FieldError, InfeasibleError, InputError, InputTypeError, OptionError
from accord.field.factors import RaggedField, flatten
from accord.inference import Propagation
from accord.inference.factors._layout import Layout
from accord.inference.factors._reference import collect

OPTIONS = [
    {},
    {"semiring": "max"},
    {"damping": 0.3, "max_sweeps": 7},
    {"edge_appearance": 0.6, "tolerance": 1e-3},
    {"edge_appearance": "spanning", "max_sweeps": 20},
    {"backend": "reference", "max_sweeps": 5},
    {"schedule": "sequential", "max_sweeps": 20},
    {"schedule": "residual", "max_sweeps": 20},
]


def rebuilt(field):
    """The same field made from its parts, so that nothing is shared with another."""
    groups = [group.with_values(group.values.clone()) for group in field.groups]
    return field._taken(FactorField(field.node.clone(), groups, field.graph, field.states, field.num_graphs))


def found(run):
    """All results of a run, or its error."""
    try:
        beliefs = run()
        labels = beliefs.decode()
    except InfeasibleError as error:
        return str(error)
    results = [beliefs.messages, beliefs.converged, beliefs.sweeps, beliefs.residual, beliefs.node, labels]
    results += [beliefs.log_partition, *(table for table in beliefs.factors if table is not None)]
    return [beliefs.backend, *(beliefs.edge if isinstance(beliefs.field, RaggedField) else []), *results]


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, str):
        assert one == other
        return
    for here, there in zip(one, other, strict=True):
        assert torch.equal(here, there) if isinstance(here, torch.Tensor) else here == there


def fresh_numbers(field, seed, barred=0.0, replicas=()):
    """Node potentials and values of each group, of a field's shapes."""
    generator = torch.Generator().manual_seed(seed)

    def draw(axes):
        values = torch.randn(*replicas, *axes, generator=generator, dtype=field.node.dtype)
        return values.masked_fill(torch.rand(values.shape, generator=generator) < barred, -torch.inf)

    return draw(field.node.shape[-2:]), [draw(group.value_axes) for group in field.groups]


@st.composite
def ragged_fields(draw):
    num_nodes = draw(st.integers(1, 6))
    counts = draw(st.lists(st.integers(1, 4), min_size=num_nodes, max_size=num_nodes))
    edge_index = draw(edge_lists(num_nodes))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    node = [torch.randn(count, generator=generator, dtype=DTYPE) for count in counts]
    edge = [torch.randn(counts[s], counts[t], generator=generator, dtype=DTYPE) for s, t in edge_index.t().tolist()]
    return PairwiseField.ragged(edge_index, node, edge)


@settings(max_examples=60)
@given(factor_fields(barred=0.05) | ragged_fields(), st.sampled_from(OPTIONS), st.sampled_from([0.0, 0.2]))
def test_every_call_equals_propagate(field, options, barred):
    if options.get("schedule") is not None and not field.groups:
        options = {}
    solver = Propagation(field, **options)
    for _ in range(2):
        assert_same(found(solver), found(lambda: propagate(rebuilt(field), **options)))
    for seed, replicas in ((1, ()), (2, ()), (3, (2,)), (4, ())):
        node, values = fresh_numbers(field, seed, barred, replicas)
        whole = field._taken(
            FactorField(
                node,
                [group.with_values(value) for group, value in zip(field.groups, values, strict=True)],
                field.graph,
                field.states,
            )
        )
        expected = found(lambda whole=whole: propagate(whole, **options))
        assert_same(found(lambda node=node, values=values: solver(node, values)), expected)
    node, values = fresh_numbers(field, 5)
    assert_same(found(lambda: solver(node)), found(lambda: propagate(rebuilt(field.with_potentials(node)), **options)))
    some = [None, *values[1:]] if values else []
    expected = found(lambda: propagate(rebuilt(field.with_potentials(values=some)), **options))
    assert_same(found(lambda: solver(edge=some)), expected)


@given(factor_fields(barred=0.1), st.sampled_from(["synchronous", "sequential", "residual"]), st.booleans())
def test_totals_of_the_kernel_are_the_beliefs_that_follow_from_messages(field, schedule, damped):
    options = {"schedule": schedule, "damping": 0.4 * damped, "max_sweeps": 3}
    try:
        beliefs = propagate(field, backend="native", **options)
    except InfeasibleError:
        return
    totals, _ = collect(beliefs.problem, Layout(beliefs.problem.flat), beliefs._flat_messages)
    expected = torch.full_like(beliefs.node, -torch.inf).reshape(len(beliefs._flat_messages), field.num_nodes, -1)
    expected[:, torch.arange(field.num_states) < field.states[:, None]] = totals.join()
    assert_close(beliefs.node.reshape(expected.shape).exp(), expected.softmax(-1), rtol=0, atol=1e-9)


def two_rings(**more):
    """Four variables of 2 and 3 states, two factors over three of them, and a rule."""
    generator = torch.Generator().manual_seed(0)
    counts = torch.tensor([2, 2, 3, 2])
    groups = [
        TableFactors(torch.tensor([[0, 1, 2], [3, 1, 2]]), torch.randn(2, 2, 2, 3, generator=generator)),
        OrFactors(torch.tensor([[0, 1, 3]])),
    ]
    return FactorField(torch.randn(4, 3, generator=generator), groups, num_states=counts, **more)


@pytest.mark.parametrize("options", OPTIONS[:4], ids=str)
def test_gradients_equal_those_of_propagate(options):
    field = two_rings()
    solver = Propagation(field, **options)
    results, expected = [], []
    for run, gradients in (
        (solver, results),
        (lambda node, values: propagate(field.with_potentials(node, values), **options), expected),
    ):
        for seed in (1, 2):
            node, values = fresh_numbers(field, seed)
            leaves = [node.requires_grad_(), *(value.requires_grad_() for value in values)]
            beliefs = run(leaves[0], leaves[1:])
            total = beliefs.node[:2, :2].sum() + beliefs.log_partition.sum()
            gradients += torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
    assert any(bool(gradient.any()) for gradient in results)
    assert all(torch.equal(one, other) for one, other in zip(results, expected, strict=True))


def test_a_call_can_start_from_an_earlier_one():
    field = two_rings()
    first = propagate(field, max_sweeps=1)
    solver = Propagation(field, max_sweeps=2)
    assert_same(found(lambda: solver(start=first)), found(lambda: propagate(rebuilt(field), max_sweeps=2, start=first)))


def test_flattening_is_kept_and_numbers_are_not():
    field = two_rings()
    node, values = fresh_numbers(field, 1)
    other = field.with_potentials(node, values)
    one, two = flatten(field, keep_rules=True), flatten(other, keep_rules=True)
    assert two.scope is one.scope and two.blocks is one.blocks
    assert not torch.equal(two.tables, one.tables) and not torch.equal(two.unary, one.unary)
    ragged = PairwiseField.ragged(torch.tensor([[0], [1]]), [torch.zeros(2), torch.zeros(3)], [torch.zeros(2, 3)])
    again = ragged.with_potentials(values=[torch.ones(1, 2, 3)])
    assert Layout.of(flatten(again)) is Layout.of(flatten(ragged))
    assert isinstance(again, RaggedField) and float(again.edge[0].min()) == 1


def test_tensors_changed_in_place_count():
    field = two_rings()
    scope = field.groups[0].scope
    solver = Propagation(field)
    node, values = fresh_numbers(field, 1)
    assert_same(
        found(lambda: solver(node, values)), found(lambda: propagate(rebuilt(field.with_potentials(node, values))))
    )
    field.groups[0].tables.mul_(2.0)
    assert_same(found(solver), found(lambda: propagate(rebuilt(field))))
    scope[0] = torch.tensor([1, 3, 2])
    assert_same(found(solver), found(lambda: propagate(rebuilt(field))))
    assert_same(
        found(lambda: solver(node, values)), found(lambda: propagate(rebuilt(field.with_potentials(node, values))))
    )
    scope[0, 0] = 9
    with pytest.raises(InputError, match="changed after it was built"):
        solver()


def test_potentials_are_checked_at_every_call():
    field = two_rings()
    solver = Propagation(field, edge_appearance=0.001)
    node, values = fresh_numbers(field, 1)
    with pytest.raises(FieldError, match=r"FactorField: node potentials hold NaN"):
        solver(node * torch.nan)
    with pytest.raises(FieldError, match=r"TableFactors: table potentials hold \+inf"):
        solver(node, [values[0] + torch.inf, None])
    with pytest.raises(FieldError, match="values has 1 entries, but the field has 2 groups"):
        solver(node, values[:1])
    with pytest.raises(FieldError, match="3 factors|2 factors but 3 tables"):
        solver(edge=[torch.zeros(3, 2, 2, 3), None])
    with pytest.raises(InputTypeError, match="Convert one of them"):
        solver(node.double())
    with pytest.raises(FieldError, match="replica axes do not fit"):
        solver(torch.zeros(2, 4, 3), [torch.zeros(3, 2, 2, 2, 3), None])
    with pytest.raises(OptionError, match="quotients overflow"):
        solver(edge=[values[0] * 1e31, None])


def test_options_are_checked_when_it_is_made():
    for options, message in (({"backend": "triton"}, "cannot solve fields with factors"), ({"damping": 1.0}, "is 1")):
        with pytest.raises(OptionError, match=message):
            Propagation(two_rings(), **options)
