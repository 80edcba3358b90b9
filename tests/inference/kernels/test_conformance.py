"""Every kernel passes the same suite: exact on forests, equal to the reference on loops, sound at extreme values."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.kernel_cases import EXACT, SINGLE, assert_same, barred, problem_of, random_field, requires
from support.strategies import fields, union
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import InfeasibleError
from accord.inference.kernels import KERNELS

BACKENDS = sorted(set(KERNELS) - {"triton"})  # on GPUs or in the interpreter: triton/test_solve.py
FAST = [name for name in BACKENDS if name != "reference"]


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    requires(request.param)
    return request.param


@pytest.fixture(scope="module", params=FAST)
def fast(request):
    requires(request.param)
    return request.param


# ---- truths, for every backend


@pytest.mark.parametrize("semiring", ["sum", "max"])
@settings(max_examples=25)
@given(field=fields(tree=True, max_states=4))
def test_exact_on_forests(backend, semiring, field):
    beliefs, exact = propagate(field, semiring, backend=backend), enumerate_beliefs(field, semiring)
    assert bool(beliefs.converged.all())
    assert_close(beliefs.node, exact.node, **EXACT)
    assert_close(beliefs.edge, exact.edge, **EXACT)
    assert_close(beliefs.log_partition, exact.log_partition, **EXACT)


@settings(max_examples=25)
@given(field=fields(tree=True, barred=0.2))
def test_exact_on_forests_with_forbidden_entries(backend, field):
    try:
        exact = enumerate_beliefs(field)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field, "max", backend=backend).decode()
        return
    beliefs = propagate(field, backend=backend)
    assert_close(beliefs.node, exact.node, **EXACT)
    assert_close(beliefs.edge, exact.edge, **EXACT)


@settings(max_examples=15)
@given(parts=st.lists(fields(max_nodes=5, min_states=3, max_states=3, replicas=((),)), min_size=1, max_size=6))
def test_a_batch_equals_its_graphs(backend, parts):
    for semiring in ("sum", "max"):
        options = {"semiring": semiring, "max_sweeps": 30, "tolerance": 1e-6, "backend": backend}
        whole, alone = propagate(union(parts), **options), [propagate(part, **options) for part in parts]
        assert_close(whole.node, torch.cat([b.node for b in alone], -2), **EXACT)
        assert_close(whole.sweeps, torch.cat([b.sweeps for b in alone], -1))
        assert_close(whole.converged, torch.cat([b.converged for b in alone], -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 9])
def test_extreme_potentials_stay_finite(backend, semiring, dtype, states):
    wide = random_field(9, 14, states, scale=500.0, dtype=dtype)
    beliefs = propagate(wide, semiring, max_sweeps=50, backend=backend)
    assert not bool(beliefs.node.isnan().any()) and not bool(beliefs.messages.isnan().any())
    assert bool(beliefs.log_partition.isfinite().all())


@pytest.mark.parametrize("states", [1, 2, 3, 20])
def test_graphs_without_edges_or_nodes(backend, states):
    index = torch.empty(2, 0, dtype=torch.long)
    empty = PairwiseField(index, torch.empty(0, states), torch.empty(0, states, states))
    assert propagate(empty, backend=backend).converged.tolist() == [True]
    # Graph 0 is a single node, graph 1 has an edge and an isolated node, graph 2 is empty.
    node = torch.randn(4, states, generator=torch.Generator().manual_seed(0))
    field = PairwiseField(torch.tensor([[1], [3]]), node, torch.zeros(1, states, states), torch.tensor([0, 1, 1, 1]), 3)
    beliefs = propagate(field, backend=backend)
    assert_close(beliefs.node, node.log_softmax(-1))
    assert beliefs.sweeps[0, ...] == 0 and beliefs.sweeps[2] == 0 and bool(beliefs.converged.all())


@pytest.mark.parametrize("states", [1, 2, 3, 20])
def test_contradictions_are_reported(backend, states):
    index, node = torch.tensor([[0, 1], [1, 2]]), torch.zeros(3, states)
    edge = torch.zeros(2, states, states)
    edge[1] = -torch.inf
    with pytest.raises(InfeasibleError, match="no state is left for node [12] in graph 0"):
        propagate(PairwiseField(index, node, edge), backend=backend)
    problem = problem_of(PairwiseField(index, node, torch.zeros_like(edge)))
    node[0] = -torch.inf  # `propagate` itself would refuse this, so the kernel is called directly
    with pytest.raises(InfeasibleError, match="no state is left for node 1 in graph 0"):
        KERNELS[backend](dataclasses.replace(problem, node=node[None]))


# ---- equality with the reference


@settings(max_examples=60)
@given(
    field=fields(max_nodes=7, max_states=5, replicas=((), (3,), (2, 2))),
    damping=st.sampled_from([0.0, 0.3]),
    appearance=st.sampled_from([1.0, 0.6, "spanning"]),
    tolerance=st.sampled_from([0.0, 1e-3]),
    semiring=st.sampled_from(["sum", "max"]),
)
def test_same_as_reference(fast, field, damping, appearance, tolerance, semiring):
    options = {"damping": damping, "edge_appearance": appearance, "tolerance": tolerance, "max_sweeps": 25}
    assert_same(field, fast, semiring=semiring, **options)


def test_one_appearance_below_one_makes_the_problem_weighted(fast):
    field = random_field(20, 45, 3)
    appearance = torch.ones(45, dtype=torch.float64)
    plain = propagate(field, edge_appearance=appearance, backend=fast)
    assert not plain.problem.weighted
    assert_close(plain.node, propagate(field, backend="reference").node, **EXACT)
    appearance[7] = 0.5
    assert_same(field, fast, edge_appearance=appearance, max_sweeps=20)


def test_a_number_that_rounds_to_one_is_plain_propagation(fast):
    field, nearly = random_field(20, 45, 3), 1 - 1e-12
    assert not propagate(field.to(torch.float32), edge_appearance=nearly, backend=fast).problem.weighted
    assert propagate(field, edge_appearance=nearly, backend=fast).problem.weighted


@settings(max_examples=60)
@given(
    field=fields(max_nodes=7, max_states=4, barred=0.1),
    damping=st.sampled_from([0.0, 0.3]),
    semiring=st.sampled_from(["sum", "max"]),
)
def test_same_with_forbidden_entries(fast, field, damping, semiring):
    assert_same(field, fast, semiring=semiring, damping=damping, max_sweeps=20, tolerance=1e-4)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [*range(1, 10), 15, 16, 17, 31, 40, 64])
def test_same_for_any_number_of_states(fast, states, semiring):
    options = {"semiring": semiring, "max_sweeps": 8, "tolerance": 0.0}
    field = random_field(20, 45, states, lead=(2,), graphs=2)
    assert_same(field, fast, **options)
    assert_same(field.to(torch.float32), fast, SINGLE, **options)
    assert_same(field.with_potentials(node=barred(field.node, 0.1)), fast, **options)
    assert_same(field.with_potentials(edge=barred(field.edge, 0.1 / states)), fast, damping=0.2, **options)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [65, 71, 130])
def test_same_for_many_states(fast, states, semiring):
    options = {"semiring": semiring, "max_sweeps": 6, "tolerance": 1e-3, "damping": 0.2}
    field = random_field(10, 14, states, lead=(2,), graphs=2)
    assert_same(field, fast, **options)
    assert_same(field.to(torch.float32), fast, SINGLE, **options)
    assert_same(field.with_potentials(edge=barred(field.edge, 0.1 / states)), fast, **options)
    wide = field.with_potentials(edge=200.0 * field.edge)
    assert_same(wide, fast, {"rtol": 0, "atol": 1e-8}, **options)
    start = propagate(field, semiring, max_sweeps=2, tolerance=0.0, backend="reference")
    assert_same(field, fast, start=start, **options)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 8, 12])
def test_same_for_tables_that_span_a_thousand_nats(fast, states, semiring):
    options = {"semiring": semiring, "max_sweeps": 6, "tolerance": 0.0}
    wide = random_field(20, 45, states, scale=250.0)
    assert_same(wide, fast, {"rtol": 0, "atol": 1e-8}, **options)
    assert_same(wide.with_potentials(edge=barred(wide.edge, 0.03)), fast, {"rtol": 0, "atol": 1e-8}, **options)
    # Some tables of wide span, most not; and cavities that underflow with tables of moderate span.
    mixed = wide.edge.clone()
    mixed[5:] *= 0.004
    assert_same(wide.with_potentials(edge=mixed), fast, {"rtol": 0, "atol": 1e-8}, **options)
    assert_same(wide.with_potentials(edge=barred(mixed, 0.05)), fast, {"rtol": 0, "atol": 1e-8}, **options)


@pytest.mark.parametrize("states", [2, 3, 9])
def test_forbidden_pairs_do_not_hide_unlikely_states(fast, states):
    """The best state of the source excludes state 0 of the target, which only states e^-300 as likely allow."""
    node = torch.zeros(2, states)
    node[0, 1:] = -300.0
    edge = torch.zeros(1, states, states)
    edge[0, 0, 0] = -torch.inf
    for dtype in (torch.float32, torch.float64):
        field = PairwiseField(torch.tensor([[0], [1]]), node.to(dtype), edge.to(dtype))
        assert_same(field, fast, SINGLE, max_sweeps=3)
        assert float(propagate(field, backend=fast).messages[0, 0]) < -290


@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 10])
def test_same_on_one_large_graph(fast, states, semiring):
    """Large enough to be split into tiles."""
    options = {"semiring": semiring, "max_sweeps": 3, "tolerance": 0.0}
    field = random_field(900, 4200, states, scale=0.5)
    assert_same(field, fast, **options)
    appearance = (
        torch.rand(field.num_edges, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 0.5 + 0.5
    )
    assert_same(field, fast, damping=0.4, edge_appearance=appearance, semiring=semiring, max_sweeps=8, tolerance=0.1)
    assert_same(field.with_potentials(edge=barred(field.edge, 0.005)), fast, **options)
    start = propagate(field, max_sweeps=2, tolerance=0.0, backend="reference")
    assert_same(field, fast, start=start, **options)
    star = torch.stack([torch.zeros(4200, dtype=torch.long), torch.arange(1, 4201)])
    node = torch.randn(4201, states, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert_same(PairwiseField(star, node, field.edge), fast, **options)


@pytest.mark.parametrize("states", [2, 7])
def test_same_on_thousands_of_tiny_graphs(fast, states):
    field = random_field(6 * 500, 7 * 500, states, graphs=500, lead=(2,))
    assert_same(field, fast, max_sweeps=15, tolerance=1e-3, damping=0.1)
    options = {"max_sweeps": 15, "tolerance": 1e-3, "backend": fast}
    whole, first = propagate(field, **options), field.graph < 3
    inner = field.graph[field.edge_index[0]] < 3
    part = PairwiseField(field.edge_index[:, inner], field.node[:, first], field.edge[:, inner], field.graph[first])
    assert_close(propagate(part, **options).node, whole.node[:, first], **EXACT)


@pytest.mark.parametrize("states", [1, 2, 3, 11])
def test_starts_and_no_sweeps(fast, states):
    field = random_field(12, 20, states, lead=(2,))
    start = torch.randn(2, 40, states, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for semiring in ("sum", "max"):
        assert_same(field, fast, semiring=semiring, max_sweeps=0)
        assert_same(field, fast, semiring=semiring, max_sweeps=0, start=start)
        assert_same(field, fast, semiring=semiring, max_sweeps=3, start=start, damping=0.5)


@pytest.mark.parametrize("states", [2, 3, 16])
def test_results_are_the_same_to_the_bit_for_any_number_of_threads(fast, states):
    field = random_field(1500, 6000, states, dtype=torch.float32)
    crowd = random_field(6 * 800, 7 * 800, states, graphs=800, dtype=torch.float32)
    before = torch.get_num_threads()
    try:
        for each in (field, crowd):
            runs = []
            for threads in (1, 2, 2):
                torch.set_num_threads(threads)
                runs.append(propagate(each, max_sweeps=12, tolerance=1e-3, backend=fast))
            assert all(torch.equal(runs[0].messages, run.messages) for run in runs[1:])
            assert all(torch.equal(runs[0].residual, run.residual) for run in runs[1:])
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("graphs", [1, 2])
def test_another_default_device_of_torch_changes_nothing(backend, graphs):
    """Kernels write to buffers by address, so these must be on the device of the field."""
    field = random_field(20, 40, 3, graphs=graphs)
    there = propagate(field, backend=backend, edge_appearance=0.9)
    with torch.device("meta"):
        beliefs = propagate(field, backend=backend, edge_appearance=0.9)
    assert_close(beliefs.node, there.node, **EXACT)
    assert torch.equal(beliefs.sweeps, there.sweeps)


def test_the_input_is_left_alone(fast):
    field = random_field(20, 40, 3)
    node, edge = field.node.clone(), field.edge.clone()
    start = torch.zeros(80, 3, dtype=torch.float64)
    propagate(field, start=start, backend=fast)
    assert torch.equal(field.node, node) and torch.equal(field.edge, edge) and not bool(start.any())
