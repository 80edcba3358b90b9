"""The compiled kernel of factor graphs equals the plain one, and its schedules have the same fixed points."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factor_cases import DTYPE, enumerated, factor_fields, side_by_side
from torch.testing import assert_close

from accord import AtMostOneFactors, FactorField, PairwiseField, PottsFactors, TableFactors, propagate
from accord.errors import FieldError, InfeasibleError, OptionError
from accord.field.factors import flatten
from accord.inference.factors import _native, _reference
from accord.inference.factors._interface import FactorProblem

pytestmark = pytest.mark.skipif(_native.unavailable() is not None, reason=f"native kernel: {_native.unavailable()}")
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SINGLE = {"rtol": 1e-5, "atol": 2e-4}
ORDERED = ["sequential", "residual"]


def problem_of(field, appearance=None, **options):
    settings = {"semiring": "sum", "damping": 0.0, "max_sweeps": 20, "tolerance": 0.0, "start": None} | options
    flat = flatten(field, keep_rules=True)
    return FactorProblem(flat, appearance, **settings)


def weights(field, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return 0.5 + 0.5 * torch.rand(1, field.num_factors, generator=generator, dtype=field.node.dtype)


def assert_same(problem, tolerances=EXACT):
    """Messages, residuals and sweeps equal those of the plain version; so does the refusal of infeasible fields."""
    try:
        expected = _reference.solve(problem)
    except InfeasibleError:
        with pytest.raises(InfeasibleError, match="no state is left for node"):
            _native.solve(problem)
        return
    found = _native.solve(problem)
    assert_close(found.messages, expected.messages, **tolerances)
    assert_close(found.residual, expected.residual, **tolerances)
    assert_close(found.sweeps, expected.sweeps)


def random_tables(nodes, factors, shape, seed=0, scale=1.0, dtype=DTYPE, lead=(), graphs=1):
    """A field of factors of one shape; each graph has as many of them."""
    generator = torch.Generator().manual_seed(seed)
    each = nodes // graphs
    scope = torch.stack([torch.randperm(each, generator=generator)[: len(shape)] for _ in range(factors)])
    part = torch.arange(factors) * graphs // factors
    scope = scope + each * part[:, None]
    states = max(shape)
    node = scale * torch.randn(*lead, each * graphs, states, generator=generator, dtype=dtype)
    tables = scale * torch.randn(*lead, factors, *[states] * len(shape), generator=generator, dtype=dtype)
    graph = torch.arange(each * graphs) // each
    return FactorField(node, [TableFactors(scope, tables)], graph, num_graphs=graphs)


# ---- synchronous sweeps


@settings(max_examples=80)
@given(
    field=factor_fields(max_states=4, barred=0.05),
    other=factor_fields(replicas=((),)),
    damping=st.sampled_from([0.0, 0.3]),
    weighted=st.booleans(),
    tolerance=st.sampled_from([0.0, 1e-3]),
    semiring=st.sampled_from(["sum", "max"]),
)
def test_same_as_the_plain_version(field, other, damping, weighted, tolerance, semiring):
    if not field.replicas:
        field = side_by_side([field, other])
    appearance = weights(field) if weighted else None
    assert_same(problem_of(field, appearance, damping=damping, tolerance=tolerance, semiring=semiring))


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("shape", [(1,), (5,), (2, 2), (9, 9), (40, 40), (81, 81), (2, 2, 2), (3, 3, 3), (7, 7, 7)])
def test_same_for_many_factors_of_one_shape(shape, semiring):
    field = random_tables(40, 70, shape, graphs=2, lead=(2,))
    options = {"semiring": semiring, "max_sweeps": 4}
    assert_same(problem_of(field, **options))
    assert_same(problem_of(field.to(torch.float32), **options), SINGLE)
    assert_same(problem_of(field, weights(field), damping=0.2, **options))
    barred = torch.rand(field.groups[0].tables.shape, generator=torch.Generator().manual_seed(1)) < 0.1 / max(shape)
    forbidden = field.groups[0].tables.masked_fill(barred, -torch.inf)
    assert_same(problem_of(field.with_potentials(values=[forbidden]), **options))


@pytest.mark.parametrize("semiring", ["sum", "max"])
def test_same_for_a_shared_table(semiring):
    field = random_tables(60, 50, (3, 3, 3))
    group = field.groups[0]
    table = torch.arange(50) % 3  # shared by seventeen factors each
    shared = FactorField(field.node, [TableFactors(group.scope, group.tables[:3], table)])
    assert_same(problem_of(shared, semiring=semiring))
    assert_same(problem_of(shared, weights(shared), semiring=semiring))
    one = FactorField(field.node, [TableFactors(group.scope, group.tables[:1])])
    assert_same(problem_of(one, semiring=semiring))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(2, 2), (3, 3, 3), (20, 20)])
def test_same_for_potentials_that_span_thousands_of_nats(shape, dtype):
    for factors in (3, 30):
        field = random_tables(12, factors, shape, scale=300.0, dtype=dtype)
        problem = problem_of(field, max_sweeps=4)
        expected = _reference.solve(replace(problem, flat=flatten(field.to(DTYPE), keep_rules=True)))
        tolerances = {"rtol": 1e-10, "atol": 1e-8} if dtype == DTYPE else {"rtol": 1e-5, "atol": 1e-2}
        assert_close(_native.solve(problem).messages.double(), expected.messages, **tolerances)


def test_long_rules_are_exact():
    generator = torch.Generator().manual_seed(0)
    count = 2000
    node = 20.0 * torch.randn(count, 2, generator=generator, dtype=DTYPE)
    scope = torch.randperm(count, generator=generator)[None]
    for rule in (AtMostOneFactors(scope), PottsFactors(scope, 3.0, 2)):
        for semiring in ("sum", "max"):
            assert_same(problem_of(FactorField(node, [rule]), semiring=semiring, max_sweeps=2), EXACT)


@pytest.mark.parametrize("schedule", ["synchronous", *ORDERED])
def test_results_are_the_same_to_the_bit_for_any_number_of_threads(schedule):
    one = random_tables(800, 3000, (3, 3, 3), dtype=torch.float32)
    many = random_tables(900, 3000, (4, 4), dtype=torch.float32, graphs=150)
    before = torch.get_num_threads()
    try:
        for field in (one, many):
            runs = []
            for threads in (1, 2, 2):
                torch.set_num_threads(threads)
                runs.append(_native.solve(problem_of(field, max_sweeps=6, tolerance=1e-3, schedule=schedule)))
            assert all(torch.equal(runs[0].messages, run.messages) for run in runs[1:])
            assert all(torch.equal(runs[0].residual, run.residual) for run in runs[1:])
    finally:
        torch.set_num_threads(before)


def test_a_hundred_thousand_factors():
    field = random_tables(60_000, 1, (2, 2, 2), dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    first = torch.randint(0, 60_000 - 2, (100_000, 1), generator=generator)
    tables = torch.randn(100_000, 2, 2, 2, generator=generator)
    large = FactorField(field.node, [TableFactors(first + torch.arange(3), tables)])
    assert_same(problem_of(large, max_sweeps=2), SINGLE)


def test_totals_are_beliefs_of_variables():
    field = random_tables(30, 40, (3, 3, 3))
    beliefs = propagate(field, max_sweeps=5)
    totals = _native.solve(beliefs.problem).totals.reshape(30, 3)
    assert_close(totals.log_softmax(-1), beliefs.node, **EXACT)


@pytest.mark.parametrize("schedule", ["synchronous", *ORDERED])
def test_no_factors_no_sweeps_and_starts(schedule):
    lone = FactorField(torch.randn(3, 2, dtype=DTYPE), [])
    assert _native.solve(problem_of(lone, schedule=schedule)).sweeps.tolist() == [[0]]
    field = random_tables(12, 20, (3, 3))
    still = _native.solve(problem_of(field, max_sweeps=0, schedule=schedule))
    assert still.sweeps.tolist() == [[0]] and still.residual.tolist() == [[torch.inf]]
    done = _native.solve(problem_of(field, max_sweeps=500, damping=0.2, tolerance=1e-11))
    again = problem_of(field, start=done.messages, max_sweeps=3, tolerance=1e-8, schedule=schedule)
    assert_close(_native.solve(again).messages, done.messages, rtol=0, atol=1e-7)


def test_tensors_of_other_sizes_are_refused():
    problem = problem_of(random_tables(12, 20, (3, 3)))
    with pytest.raises(FieldError, match="start has shape"):
        _native.solve(replace(problem, start=torch.zeros(1, 3, dtype=DTYPE)))
    with pytest.raises(FieldError, match="do not exist"):
        _native.solve(replace(problem, flat=replace(problem.flat, scope=problem.flat.scope + 5)))


# ---- schedules


@pytest.mark.parametrize("schedule", ORDERED)
@settings(max_examples=60)
@given(field=factor_fields(tree=True, barred=0.1), semiring=st.sampled_from(["sum", "max"]))
def test_schedules_are_exact_on_trees(schedule, field, semiring):
    total, node = enumerated(field, semiring)
    if bool((total == -torch.inf).any()):
        with pytest.raises(InfeasibleError):
            propagate(field, semiring=semiring, schedule=schedule)
        return
    beliefs = propagate(field, semiring=semiring, schedule=schedule)
    assert beliefs.backend == "native" and bool(beliefs.converged.all())
    assert_close(beliefs.node.nan_to_num(neginf=-1e3), node.nan_to_num(neginf=-1e3), rtol=0, atol=1e-9)
    if schedule == "sequential" and field.num_factors:
        assert int(beliefs.sweeps.max()) <= 3  # rounding may take a third to confirm


@pytest.mark.parametrize("schedule", ORDERED)
@settings(max_examples=40)
@given(field=factor_fields(max_nodes=5), damping=st.sampled_from([0.0, 0.3]), weighted=st.booleans())
def test_schedules_end_in_fixed_points(schedule, field, damping, weighted):
    options = {"damping": damping, "max_sweeps": 400, "tolerance": 1e-11}
    appearance = weights(field) if weighted else None
    found = _native.solve(problem_of(field, appearance, schedule=schedule, **options))
    if bool((found.residual <= 1e-11).all()):
        once = _native.solve(problem_of(field, appearance, start=found.messages, max_sweeps=1))
        assert_close(once.messages, found.messages, rtol=0, atol=1e-8)


def residual_in_order(field, sends):
    """Messages of a PairwiseField after so many sends, each time that of the largest exact change."""
    along, against = field.edge_index
    source, target = torch.cat([along, against]), torch.cat([against, along])
    tables = torch.cat([field.edge, field.edge.transpose(-1, -2)])
    messages = torch.full((len(source), field.num_states), 0.0, dtype=DTYPE).log_softmax(-1)
    reverse = torch.arange(len(source)).roll(field.num_edges)
    for _ in range(sends):
        totals = field.node.index_add(0, target, messages)
        cavity = totals[source] - messages[reverse]
        new = (tables + cavity[:, :, None]).logsumexp(1).log_softmax(-1)
        change = (new - messages).abs().amax(-1) / new.abs().amax(-1).clamp(min=1)
        first = int(change.argmax())
        messages[first] = new[first]
    return messages


@pytest.mark.parametrize("states", [2, 3])
def test_residual_sends_the_largest_change_first(states):
    generator = torch.Generator().manual_seed(states)
    index = torch.tensor([[0, 1, 2, 3, 4, 0, 1], [1, 2, 3, 4, 0, 2, 4]])
    node = torch.randn(5, states, generator=generator, dtype=DTYPE)
    field = PairwiseField(index, node, torch.randn(7, states, states, generator=generator, dtype=DTYPE))
    for sweeps in (1, 3):
        beliefs = propagate(field, schedule="residual", backend="native", max_sweeps=sweeps, tolerance=0.0)
        assert_close(beliefs.messages, residual_in_order(field, sweeps * 14), **EXACT)


def test_hubs_are_no_trouble_for_the_residual_schedule():
    leaves = 5000
    index = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)])
    generator = torch.Generator().manual_seed(0)
    field = PairwiseField(index, torch.randn(leaves + 1, 2, generator=generator), torch.randn(leaves, 2, 2) / 50)
    star = propagate(field, schedule="residual")
    assert bool(star.converged) and int(star.sweeps) <= 2
    assert_close(star.node, propagate(field).node, rtol=0, atol=1e-3)


# ---- the front door


def test_the_kernel_is_chosen_by_name_and_by_default():
    field = random_tables(12, 20, (3, 3, 3))
    assert propagate(field).backend == "native" and propagate(field, backend="reference").backend == "reference"
    with pytest.raises(OptionError, match="cannot solve fields with factors"):
        propagate(field, backend="triton")
    learnt = field.with_potentials(node=field.node.clone().requires_grad_())
    with pytest.raises(OptionError, match="did not converge"):
        propagate(learnt, schedule="sequential", max_sweeps=1).node.sum().backward()
    grown = []
    for backend in ("native", "reference"):
        leaf = field.node.clone().requires_grad_()
        beliefs = propagate(field.with_potentials(node=leaf), backend=backend, damping=0.2)
        beliefs.log_partition.sum().backward()
        grown.append(leaf.grad)
    assert_close(grown[0], grown[1], rtol=1e-7, atol=1e-7)
