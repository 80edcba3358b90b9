"""Float32 stays close to float64 on hubs and long chains, and large potentials converge like small ones."""

import pytest
import torch
from inference.kernel_cases import random_field, requires
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.inference import eliminate_beliefs

BACKENDS = ["native", "reference"]
LEAVES = 40_000


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    requires(request.param)
    return request.param


def star(states, balanced=False):
    """A hub with many leaves, as float32. If balanced, half of the leaves prefer state 0 and the others state 1."""
    generator = torch.Generator().manual_seed(0)
    index = torch.stack([torch.zeros(LEAVES, dtype=torch.long), torch.arange(1, LEAVES + 1)])
    node = torch.randn(LEAVES + 1, states, generator=generator)
    edge = torch.randn(LEAVES, states, states, generator=generator)
    if balanced:
        node[1:], edge[:] = 0.0, torch.eye(states)
        node[1 : LEAVES // 2 + 1, 0] = 2.0
        node[LEAVES // 2 + 1 :, 1] = 2.0
    return PairwiseField(index, node, edge)


def solve_star(field):
    """Log-partition and beliefs of the hub, from their definition."""
    node, edge = field.node.double(), field.edge.double()
    totals = node[0] + (edge + node[1:, None, :]).logsumexp(-1).sum(0)
    return totals.logsumexp(-1), totals.log_softmax(-1)


@pytest.mark.parametrize("states", [2, 3, 12])
@pytest.mark.parametrize("balanced", [False, True])
def test_log_partition_of_a_hub_is_exact_to_float32(backend, states, balanced):
    field = star(states, balanced)
    beliefs = propagate(field, backend=backend)
    assert beliefs.converged.tolist() == [True]
    assert_close(beliefs.log_partition.double(), solve_star(field)[0][None], rtol=5e-7, atol=0)


@pytest.mark.parametrize("schedule", ["sequential", "residual"])
def test_log_partition_of_a_hub_is_exact_in_every_schedule(schedule):
    field = star(3)
    beliefs = propagate(field, schedule=schedule)
    assert_close(beliefs.log_partition.double(), solve_star(field)[0][None], rtol=5e-7, atol=0)


@pytest.mark.parametrize("balanced", [False, True])
def test_elimination_of_a_hub_is_exact_to_float32(balanced):
    field = star(3, balanced)
    partition, hub = solve_star(field)
    beliefs = eliminate_beliefs(field)
    assert beliefs.node.dtype == beliefs.edge.dtype == beliefs.log_partition.dtype == torch.float32
    assert_close(beliefs.log_partition.double(), partition[None], rtol=1e-7, atol=0)
    assert_close(beliefs.node[0].double(), hub, rtol=1e-6, atol=1e-6)
    best = eliminate_beliefs(field, "max")
    assert_close(best.log_partition, field.score(best.decode()), rtol=1e-7, atol=0)


@pytest.mark.parametrize("states", [2, 3, 12])
def test_beliefs_of_a_hub_between_two_camps(backend, states):
    """Large sums that cancel: what is left must not be rounding."""
    field = star(states, balanced=True)
    expected = solve_star(field)[1][:2]
    beliefs = propagate(field, backend=backend)
    # Each message is rounded, and all leaves of a camp round alike: 40,000 times 1e-7 is the best that float32 can do.
    assert_close(beliefs.node[0, :2].double(), expected, rtol=0, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 9])
def test_large_potentials_converge(backend, states, semiring, dtype):
    """Numbers around a million have no digits below 1e-2 in float32, nor below 1e-10 in float64."""
    field = random_field(30, 29, states, seed=3, scale=1e6, dtype=dtype)
    beliefs = propagate(field, semiring, max_sweeps=300, damping=0.5, backend=backend)
    small = propagate(field.with_potentials(field.node / 1e6, field.edge / 1e6), semiring, damping=0.5, backend=backend)
    assert small.converged.tolist() == [True]
    assert beliefs.converged.tolist() == [True]


@pytest.mark.parametrize("damping", [1e-320, 1 - 1e-16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("semiring", ["sum", "max"])
@pytest.mark.parametrize("states", [2, 3, 9])
def test_weights_that_round_to_0_leave_forbidden_states_forbidden(backend, states, semiring, dtype, damping):
    """0 times -inf is NaN."""
    field = random_field(6, 5, states, seed=1, scale=1.0, dtype=dtype)
    field = field.with_potentials(edge=field.edge.index_fill(-1, torch.tensor([0]), -torch.inf))
    beliefs = propagate(field, semiring, damping=damping, max_sweeps=3, backend=backend)
    assert not bool(beliefs.messages.isnan().any()) and not bool(beliefs.node.isnan().any())


def test_tolerance_is_relative_to_the_largest_entry_of_a_message(backend):
    """One edge, one sweep: the message to node 1 goes from uniform to (-log 2, -1000) - log-sum."""
    node, edge = torch.zeros(2, 2, dtype=torch.float64), torch.zeros(1, 2, 2, dtype=torch.float64)
    edge[0, :, 1] = -1000.0
    field = PairwiseField(torch.tensor([[0], [1]]), node, edge)
    once = propagate(field, max_sweeps=1, backend=backend)
    uniform = torch.full((2,), 0.5, dtype=torch.float64).log()
    step = (once.messages[0] - uniform).abs().max() / once.messages[0].abs().max()
    assert_close(once.residual, step[None])
    assert 0.99 < float(once.residual) < 1
    assert propagate(field, max_sweeps=1, tolerance=1.0, backend=backend).converged.tolist() == [True]


def test_score_of_a_long_chain_is_exact_to_float32():
    nodes = 300_000
    index = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    field = PairwiseField(index, torch.full((nodes, 2), 0.1), torch.full((nodes - 1, 2, 2), 0.3))
    score = field.score(torch.zeros(nodes, dtype=torch.long))
    exact = field.node[:, 0].double().sum() + field.edge[:, 0, 0].double().sum()
    assert score.dtype == torch.float32
    assert_close(score.double(), exact[None], rtol=1e-7, atol=0)
