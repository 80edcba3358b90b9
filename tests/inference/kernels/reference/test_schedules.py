"""All schedules have the same fixed points and count sweeps in the same way."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import DTYPE, fields, union
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import InfeasibleError, OptionError
from accord.inference.factors import _native
from accord.inference.kernels.reference import SCHEDULES, _residual

EXACT = {"rtol": 0, "atol": 1e-9}


@pytest.fixture(scope="module", params=[name for name in SCHEDULES if name != "synchronous"])
def schedule(request):
    return request.param


@pytest.fixture(scope="module", params=["native", "reference"])
def backend(request):
    if request.param == "native" and _native.unavailable() is not None:
        pytest.skip(f"native kernel: {_native.unavailable()}")
    return request.param


def ising_grid(rows, columns, coupling, seed=0, lead=()):
    generator = torch.Generator().manual_seed(seed)
    number = torch.arange(rows * columns).reshape(rows, columns)
    across = torch.stack([number[:, :-1].flatten(), number[:, 1:].flatten()])
    down = torch.stack([number[:-1].flatten(), number[1:].flatten()])
    index = torch.cat([across, down], 1)
    bias = 0.3 * torch.randn(*lead, rows * columns, generator=generator, dtype=DTYPE)
    table = coupling * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=DTYPE)
    return PairwiseField(index, torch.stack([-bias, bias], -1), table.expand(*lead, index.shape[1], 2, 2).contiguous())


# ---- truths


@pytest.mark.parametrize("semiring", ["sum", "max"])
@given(field=fields(tree=True, max_states=4))
@settings(max_examples=25)
def test_exact_on_forests(schedule, backend, semiring, field):
    beliefs, exact = propagate(field, semiring, schedule=schedule, backend=backend), enumerate_beliefs(field, semiring)
    assert bool(beliefs.converged.all()) and beliefs.backend == backend
    assert_close(beliefs.node, exact.node, **EXACT)
    assert_close(beliefs.edge, exact.edge, **EXACT)
    assert_close(beliefs.log_partition, exact.log_partition, **EXACT)


@given(field=fields(tree=True, barred=0.2))
@settings(max_examples=40)
def test_exact_on_forests_with_forbidden_entries(schedule, backend, field):
    try:
        exact = enumerate_beliefs(field)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field, "max", schedule=schedule, backend=backend).decode()
        return
    assert_close(propagate(field, schedule=schedule, backend=backend).node, exact.node, **EXACT)


@pytest.mark.parametrize("semiring", ["sum", "max"])
@given(field=fields(max_nodes=6, scale=0.7), damping=st.sampled_from([0.0, 0.3]))
@settings(max_examples=25)
def test_loops_end_where_synchronous_sweeps_end(schedule, semiring, field, damping):
    appearance = torch.linspace(0.6, 1.0, field.num_edges, dtype=DTYPE)
    options = {"semiring": semiring, "damping": damping, "max_sweeps": 2000, "edge_appearance": appearance}
    plain, ordered = propagate(field, **options), propagate(field, schedule=schedule, **options)
    if semiring == "sum":  # with such weak couplings there is only one fixed point
        assert bool(plain.converged.all()) and bool(ordered.converged.all())
        assert_close(ordered.node, plain.node, rtol=0, atol=1e-8)
    again = propagate(field, start=ordered, **(options | {"max_sweeps": 1, "tolerance": 1e-6}))
    assert bool((again.converged | ~ordered.converged).all())  # converged: a synchronous sweep changes nothing


def test_fewer_sweeps_on_a_grid_near_the_transition(schedule):
    field = ising_grid(12, 12, 0.35)
    plain, ordered = (propagate(field, schedule=name, max_sweeps=2000) for name in ("synchronous", schedule))
    assert bool(plain.converged) and bool(ordered.converged)
    assert 2 * int(ordered.sweeps) < int(plain.sweeps)
    assert_close(ordered.node, plain.node, rtol=0, atol=1e-8)


def test_sequential_solves_long_paths_in_one_sweep():
    length = 300
    index = torch.stack([torch.arange(length - 1), torch.arange(1, length)])
    node = torch.randn(length, 3, generator=torch.Generator().manual_seed(0), dtype=DTYPE)
    edge = torch.randn(length - 1, 3, 3, generator=torch.Generator().manual_seed(1), dtype=DTYPE)
    field = PairwiseField(index, node, edge)
    once = propagate(field, schedule="sequential", max_sweeps=1)
    assert_close(once.node, propagate(field).node, **EXACT)
    assert int(propagate(field, schedule="sequential").sweeps) == 2  # the second finds no change


# ---- what all kernels have in common


@given(parts=st.lists(fields(max_nodes=5, min_states=2, max_states=2, replicas=((),)), min_size=1, max_size=4))
@settings(max_examples=20)
def test_a_batch_equals_its_graphs(schedule, backend, parts):
    options = {"max_sweeps": 7, "tolerance": 1e-4, "schedule": schedule, "damping": 0.1, "backend": backend}
    whole, alone = propagate(union(parts), **options), [propagate(part, **options) for part in parts]
    assert_close(whole.node, torch.cat([b.node for b in alone], -2), **EXACT)
    assert_close(whole.sweeps, torch.cat([b.sweeps for b in alone], -1))
    assert_close(whole.residual, torch.cat([b.residual for b in alone], -1), **EXACT)
    assert_close(whole.converged, torch.cat([b.converged for b in alone], -1))


def test_replicas_equal_separate_runs(schedule, backend):
    field = ising_grid(4, 5, 0.5, lead=(3,))
    options = {"max_sweeps": 6, "tolerance": 1e-3, "schedule": schedule, "backend": backend}
    together = propagate(field, **options)
    for number in range(3):
        alone = propagate(PairwiseField(field.edge_index, field.node[number], field.edge[number]), **options)
        assert_close(together.messages[number], alone.messages, **EXACT)
        assert_close(together.sweeps[number], alone.sweeps)


def test_sweeps_are_counted_and_limited(schedule, backend):
    field = ising_grid(6, 6, 0.4)
    for limit in (0, 1, 3):
        beliefs = propagate(field, schedule=schedule, max_sweeps=limit, tolerance=0.0, backend=backend)
        assert int(beliefs.sweeps) == limit and not bool(beliefs.converged)
    again = propagate(field, schedule=schedule, start=propagate(field), tolerance=1e-6, backend=backend)
    assert bool(again.converged) and int(again.sweeps) <= 1


def test_the_reference_begins_with_a_synchronous_sweep_by_residuals():
    field = ising_grid(6, 6, 0.4)
    one = propagate(field, max_sweeps=1)
    first = propagate(field, schedule="residual", max_sweeps=1, backend="reference")
    assert_close(first.messages, one.messages, **EXACT)


def test_residual_sends_a_share_of_the_arcs_in_each_round():
    """All arcs are sent in the first round, and at most an eighth of them later."""
    sent = []
    original = _residual.new_messages

    def count(problem, potentials, cavity, arcs):
        sent.append(len(arcs))
        return original(problem, potentials, cavity, arcs)

    field = ising_grid(6, 6, 0.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_residual, "new_messages", count)
        beliefs = propagate(field, schedule="residual", tolerance=1e-6, backend="reference")
    arcs = 2 * field.num_edges
    assert sent[0] == arcs and max(sent[1:]) <= -(-arcs // 8)
    assert int(beliefs.sweeps) == -(-sum(sent) // arcs)


def test_graphs_without_edges(schedule, backend):
    lone = PairwiseField(torch.empty(2, 0, dtype=torch.long), torch.tensor([[0.0, 1.0]]), torch.empty(0, 2, 2))
    beliefs = propagate(lone, schedule=schedule, backend=backend)
    assert beliefs.sweeps.tolist() == [0] and beliefs.converged.tolist() == [True]


def test_infeasible_fields_are_named(schedule, backend):
    field = ising_grid(2, 2, 0.5).forbid([(0, 0), (0, 1), (1, 1)])
    with pytest.raises(InfeasibleError, match="no state is left for node"):
        propagate(field, schedule=schedule, backend=backend)


@pytest.mark.parametrize("sweeps", [3, 400])
def test_gradients(schedule, sweeps):
    """The same at a fixed point as with any schedule; otherwise those of the unrolled schedule."""
    field = ising_grid(3, 3, 0.4, lead=(2,))
    found = []
    for backend in ("auto", "reference"):
        node, edge = field.node.clone().requires_grad_(), field.edge.clone().requires_grad_()
        beliefs = propagate(field.with_potentials(node, edge), max_sweeps=sweeps, schedule=schedule, backend=backend)
        assert bool(beliefs.converged.all()) == (sweeps == 400)
        (beliefs.node[..., 1].exp().sum() + beliefs.log_partition.sum()).backward()
        found.append((node.grad, edge.grad))
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs, rtol=1e-7, atol=1e-7)


def test_unrolled_gradients_are_those_of_finite_differences(schedule):
    field = ising_grid(2, 3, 0.4)

    def run(node, edge):
        fresh = PairwiseField(field.edge_index, node, edge)
        return propagate(fresh, max_sweeps=2, tolerance=0.0, schedule=schedule, damping=0.1).node

    assert torch.autograd.gradcheck(run, (field.node.clone().requires_grad_(), field.edge.clone().requires_grad_()))


def test_bad_schedules_and_backends_are_refused(schedule):
    field = ising_grid(2, 2, 0.5)
    for wrong in ("random", None, 3, ["sequential"]):
        with pytest.raises(OptionError, match="unknown. Choose 'synchronous'"):
            propagate(field, schedule=wrong)
    with pytest.raises(OptionError, match=f"backend 'triton' cannot be used here.*{schedule}"):
        propagate(field, schedule=schedule, backend="triton")
