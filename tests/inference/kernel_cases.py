"""Fields, and comparisons with the reference, that the tests of all kernels share."""

import dataclasses

import pytest
import torch
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.errors import InfeasibleError
from accord.inference.kernels import cpu

EXACT = {"rtol": 0, "atol": 1e-9}
SINGLE = {"rtol": 0, "atol": 2e-4}


def requires(backend):
    """Skip a test where the backend is not available."""
    if backend == "native" and cpu.unavailable() is not None:
        pytest.skip(f"native kernel: {cpu.unavailable()}")


def random_field(nodes, edges, states, seed=0, lead=(), graphs=1, scale=1.0, dtype=torch.float64):
    """A batch of random graphs of about the same size, edges in random order and direction."""
    generator = torch.Generator().manual_seed(seed)
    each = nodes // graphs
    source = torch.randint(0, nodes, (3 * edges + 8,), generator=generator)
    target = source // each * each + torch.randint(0, each, source.shape, generator=generator)
    source, target = source[target < nodes], target[target < nodes]
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    key = (low * nodes + high)[low != high].unique()
    key = key[torch.randperm(len(key), generator=generator)[:edges]]
    index = torch.stack([key // nodes, key % nodes])
    turned = torch.rand(index.shape[1], generator=generator) < 0.5
    index[:, turned] = index[:, turned].flip(0)
    node = scale * torch.randn(*lead, nodes, states, generator=generator, dtype=torch.float64)
    edge = scale * torch.randn(*lead, index.shape[1], states, states, generator=generator, dtype=torch.float64)
    graph = (torch.arange(nodes) // each).clamp(max=graphs - 1)
    return PairwiseField(index, node.to(dtype), edge.to(dtype), graph, graphs)


def barred(values, share, seed=0):
    off = torch.rand(values.shape, generator=torch.Generator().manual_seed(seed)) < share
    return values.masked_fill(off, -torch.inf)


def assert_same(field, backend, tolerances=EXACT, **options):
    """Messages, sweeps and residuals equal those of the reference; so does the refusal of infeasible fields."""
    try:
        expected = propagate(field, backend="reference", **options)
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            propagate(field, backend=backend, **options)
        return
    beliefs = propagate(field, backend=backend, **options)
    assert beliefs.backend == backend
    assert_close(beliefs.messages, expected.messages, **tolerances)
    # Node beliefs add up the rounding of messages, so they are compared with those of the kernel's own messages.
    assert_close(beliefs.node, dataclasses.replace(beliefs, totals=None).node, **tolerances)
    assert_close(beliefs.residual, expected.residual, **tolerances)
    assert_close(beliefs.sweeps, expected.sweeps)
    if options.get("tolerance") != 0:  # whether a residual is exactly 0 depends on rounding
        assert_close(beliefs.converged, expected.converged)


def problem_of(field, **options):
    return propagate(field, max_sweeps=1, backend="reference", **options).problem
