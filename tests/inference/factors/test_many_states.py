"""Fields whose variables have many and different states: every way in which the kernel lays out tables and messages."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from accord import FactorField, TableFactors, propagate
from accord.field.factors import flatten
from accord.inference.factors import _native, _reference
from accord.inference.factors._interface import FactorProblem

pytestmark = pytest.mark.skipif(_native.unavailable() is not None, reason=f"native kernel: {_native.unavailable()}")
# Shapes that occur once, a few times, and more often than a vector has lanes; the first two are the same once turned.
SHAPES = {
    (9, 27): 11,
    (27, 9): 9,
    (3, 17): 3,
    (17, 17): 25,
    (5, 3): 10,
    (2, 2): 3,
    (40, 9): 1,
    (9, 3, 17): 18,
    (27,): 2,
}
STATES = (2, 3, 5, 9, 17, 27, 40)
TOLERANCES = {torch.float32: {"rtol": 1e-5, "atol": 2e-4}, torch.float64: {"rtol": 1e-10, "atol": 1e-10}}


def side_chains(seed, scale=1.0, barred=0.0, dtype=torch.float64, replicas=(), graphs=1, shared=False):
    """Graphs with three variables of each number of states, and factors of all SHAPES."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.tensor(STATES).repeat(3 * graphs)
    each = len(counts) // graphs
    node = scale * torch.randn(*replicas, len(counts), max(STATES), generator=generator, dtype=dtype)
    groups = []
    for shape, number in SHAPES.items():
        scope = []
        for graph in range(graphs):
            for _ in range(number):
                chosen: list[int] = []
                for states in shape:
                    free = [
                        v for v in range(graph * each, (graph + 1) * each) if counts[v] == states and v not in chosen
                    ]
                    chosen.append(free[int(torch.randint(len(free), (), generator=generator))])
                scope.append(chosen)
        tables = scale * torch.randn(*replicas, 1 if shared else len(scope), *shape, generator=generator, dtype=dtype)
        tables[torch.rand(tables.shape, generator=generator) < barred] = -torch.inf
        table = torch.zeros(len(scope), dtype=torch.long) if shared else None
        groups.append(TableFactors(torch.tensor(scope), tables, table))
    return FactorField(node, groups, torch.arange(len(counts)) // each, num_graphs=graphs, num_states=counts)


def assert_same(field, weighted=False, **options):
    appearance = None
    if weighted:
        generator = torch.Generator().manual_seed(0)
        appearance = 0.5 + 0.5 * torch.rand(1, field.num_factors, generator=generator, dtype=field.node.dtype)
    settings = {"semiring": "sum", "damping": 0.0, "max_sweeps": 3, "tolerance": 0.0, "start": None} | options
    problem = FactorProblem(flatten(field, keep_rules=True), appearance, **settings)
    expected, found = _reference.solve(problem), _native.solve(problem)
    tolerances = TOLERANCES[field.node.dtype]
    assert_close(found.messages, expected.messages, **tolerances)
    assert_close(found.residual, expected.residual, **tolerances)
    assert_close(found.sweeps, expected.sweeps)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**31),
    barred=st.sampled_from([0.0, 0.0, 0.2]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    damping=st.sampled_from([0.0, 0.4]),
    weighted=st.booleans(),
    semiring=st.sampled_from(["sum", "max"]),
    shared=st.booleans(),
    replicas=st.sampled_from([(), (2,)]),
)
def test_same_as_the_plain_version(seed, barred, dtype, damping, weighted, semiring, shared, replicas):
    field = side_chains(seed, barred=barred, dtype=dtype, shared=shared, replicas=replicas)
    assert_same(field, weighted, damping=damping, semiring=semiring)


def test_graphs_stop_on_their_own():
    """Graphs that share a vector converge after different numbers of sweeps."""
    field = side_chains(1, scale=0.1, graphs=3)
    groups = []
    for group in field.groups:
        weight = 1 + 4 * (field.graph[group.scope[:, 0]] == 1).double()
        groups.append(TableFactors(group.scope, group.tables * weight.reshape(-1, *[1] * group.order)))
    field = FactorField(field.node, groups, field.graph, num_graphs=3, num_states=field.states)
    options = {"max_sweeps": 12, "tolerance": 0.02, "damping": 0.3}
    assert_same(field, **options)
    sweeps = propagate(field, backend="native", **options).sweeps
    assert sweeps[1] > sweeps[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("barred", [0.0, 0.2])
def test_potentials_that_span_thousands_of_nats(dtype, barred):
    field = side_chains(2, scale=300.0, barred=barred, dtype=torch.float32).to(dtype)
    settings = {"semiring": "sum", "damping": 0.0, "max_sweeps": 3, "tolerance": 0.0, "start": None}
    expected = _reference.solve(FactorProblem(flatten(field.to(torch.float64)), None, **settings)).messages
    found = _native.solve(FactorProblem(flatten(field), None, **settings)).messages
    bounds = {"rtol": 1e-5, "atol": 1e-2} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-8}
    assert_close(found.double(), expected, **bounds)


def test_results_are_the_same_to_the_bit_for_any_number_of_threads(monkeypatch):
    field = side_chains(3, graphs=8, dtype=torch.float32)
    monkeypatch.setattr(_native, "ONE_THREAD_WORK", 0)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(propagate(field, max_sweeps=5, tolerance=0.0, backend="native").node)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
