"""Gradients through any kernel equal those of plain unrolling, at a fraction of its memory."""

import pytest
import torch
from hypothesis import given, settings
from support.strategies import DTYPE, fields, union
from torch.testing import assert_close

from accord import PairwiseField, enumerate_beliefs, propagate
from accord.errors import OptionError
from accord.inference.kernels.cpu import _solve as _native
from accord.inference.kernels.gradients import _adjoint, _unrolling
from accord.inference.kernels.gradients import _propagation as _gradients

BACKENDS = ["auto", "native"]
TIGHT = {"rtol": 1e-8, "atol": 1e-8}


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    if request.param == "native" and _native.unavailable() is not None:
        pytest.skip(f"native kernel: {_native.unavailable()}")
    return request.param


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=DTYPE)


def ring_field(length=7, states=3, scale=1.0, lead=(), seed=0):
    """A ring with a chord."""
    index = torch.stack([torch.arange(length), torch.arange(1, length + 1) % length])
    index = torch.cat([index, torch.tensor([[0], [length // 2]])], 1)
    return PairwiseField(
        index, noise(*lead, length, states, seed=seed), scale * noise(*lead, length + 1, states, states, seed=seed + 1)
    )


def frustrated_field(states=2):
    """A complete graph with strong couplings of random sign: plain propagation does not converge."""
    index = torch.combinations(torch.arange(7)).t()
    signs = noise(index.shape[1], seed=6).sign()
    return PairwiseField(index, 0.3 * noise(7, states), 2.5 * signs[:, None, None] * torch.eye(states, dtype=DTYPE))


def loss_of(beliefs):
    """A loss that depends on every belief, each with a different weight."""
    node, edge = beliefs.node.exp(), beliefs.edge.exp()
    weighted = (node * noise(*node.shape, seed=8)).sum() + (edge * noise(*edge.shape, seed=9)).sum()
    return weighted + beliefs.log_partition.sum()


def gradients(field, backend, appearance=None, start=None, loss=loss_of, **options):
    """Gradients of a loss with respect to node, edge and, if given, appearance and start; and the beliefs."""
    given = {"node": field.node, "edge": field.edge, "edge_appearance": appearance, "start": start}
    leaves = {name: value.clone().requires_grad_() for name, value in given.items() if value is not None}
    options |= {name: leaf for name, leaf in leaves.items() if name not in ("node", "edge")}
    beliefs = propagate(field.with_potentials(leaves["node"], leaves["edge"]), backend=backend, **options)
    return torch.autograd.grad(loss(beliefs), list(leaves.values()), materialize_grads=True), beliefs


# ---- converged runs: the implicit gradient


@given(field=fields(tree=True, max_nodes=5))
@settings(max_examples=25)
def test_forests_have_the_gradients_of_exact_inference(backend, field):
    (node, edge), beliefs = gradients(field, backend)
    leaves = [field.node.clone().requires_grad_(), field.edge.clone().requires_grad_()]
    exact = torch.autograd.grad(
        loss_of(enumerate_beliefs(field.with_potentials(*leaves))), leaves, materialize_grads=True
    )
    assert bool(beliefs.converged.all())
    assert_close(node, exact[0], **TIGHT)
    assert_close(edge, exact[1], **TIGHT)


@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("semiring", ["sum", "max"])
@given(field=fields(max_nodes=5, scale=0.7))
@settings(max_examples=15)
def test_converged_loops_have_the_gradients_of_long_unrolling(backend, semiring, damping, field):
    options = {"semiring": semiring, "damping": damping, "max_sweeps": 1000}
    appearance, start = noise(field.num_edges).sigmoid(), noise(*field.replicas, 2 * field.num_edges, field.num_states)
    expected, reference = gradients(field, "reference", appearance, start, **options)
    found, beliefs = gradients(field, backend, appearance, start, **options)
    assert_close(beliefs.converged, reference.converged)
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_finite_differences_on_loops(backend):
    field = ring_field(length=5, states=2, lead=(2,))
    assert bool(propagate(field, damping=0.2, max_sweeps=500).converged.all())

    def run(node, edge, appearance):
        beliefs = propagate(
            PairwiseField(field.edge_index, node, edge),
            damping=0.2,
            edge_appearance=appearance,
            max_sweeps=500,
            backend=backend,
        )
        return beliefs.node, beliefs.edge, beliefs.log_partition

    leaves = [field.node, field.edge, 0.5 + 0.4 * noise(2, field.num_edges).sigmoid()]
    assert torch.autograd.gradcheck(run, [leaf.clone().requires_grad_() for leaf in leaves])


def test_converged_beliefs_do_not_depend_on_their_start(backend):
    field = ring_field()
    converged = propagate(field)
    (node, _, start), beliefs = gradients(field, backend, start=converged.messages)
    assert int(beliefs.sweeps) == 1 and not bool(start.any())
    # One unrolled sweep would miss most of the gradient; that of the fixed point does not depend on the start.
    assert_close(node, gradients(field, "reference")[0][0], **TIGHT)


def test_a_fixed_point_is_not_run_again(monkeypatch):
    def refuse(*_):
        raise AssertionError("unrolled")

    monkeypatch.setattr(_gradients, "unrolled_gradient", refuse)
    gradients(ring_field(lead=(2,)), "auto")
    with pytest.raises(AssertionError, match="unrolled"):
        gradients(ring_field(), "auto", max_sweeps=3)


def test_backward_sweeps_that_do_not_converge_are_replaced_by_unrolling(monkeypatch):
    monkeypatch.setattr(_adjoint, "DEFAULT_SWEEPS", 0)
    monkeypatch.setattr(_adjoint, "MORE_SWEEPS", 0)
    field = ring_field(lead=(2,))
    for ours, theirs in zip(gradients(field, "auto")[0], gradients(field, "reference")[0], strict=True):
        assert_close(ours, theirs, **TIGHT)


# ---- other runs: unrolled in segments


@pytest.mark.parametrize("sweeps", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("semiring", ["sum", "max"])
def test_a_fixed_number_of_sweeps_has_the_gradients_of_plain_unrolling(backend, semiring, sweeps):
    field = ring_field(scale=2.0, lead=(2,))
    appearance, start = noise(2, field.num_edges).sigmoid(), noise(2, 2 * field.num_edges, 3)
    options = {"semiring": semiring, "damping": 0.1, "max_sweeps": sweeps, "tolerance": 0.0}
    expected, found = (gradients(field, name, appearance, start, **options)[0] for name in ("reference", backend))
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, **TIGHT)
        assert bool(theirs.any())


def test_without_sweeps_the_start_gets_the_gradient(backend):
    field, start = ring_field(), noise(16, 3)
    expected, found = (gradients(field, name, None, start, max_sweeps=0)[0] for name in ("reference", backend))
    for ours, theirs in zip(found, expected, strict=True):
        assert_close(ours, theirs, **TIGHT)


def test_runs_that_do_not_converge_are_unrolled(backend):
    field = frustrated_field()
    expected, beliefs = gradients(field, "reference", max_sweeps=25)
    assert not bool(beliefs.converged)
    for ours, theirs in zip(gradients(field, backend, max_sweeps=25)[0], expected, strict=True):
        assert_close(ours, theirs, rtol=1e-7, atol=1e-7)


# ---- batches, replicas, constraints


def test_converged_and_other_graphs_do_not_mix(backend):
    parts = [ring_field(states=2), frustrated_field(), ring_field(length=4, states=2, seed=5)]
    options = {"max_sweeps": 60, "tolerance": 1e-10}
    (node, edge), beliefs = gradients(union(parts), backend, loss=lambda b: b.node[:, 0].exp().sum(), **options)
    assert beliefs.converged.tolist() == [True, False, True]
    alone = [gradients(part, backend, loss=lambda b: b.node[:, 0].exp().sum(), **options)[0] for part in parts]
    assert_close(node, torch.cat([part[0] for part in alone]), **TIGHT)
    assert_close(edge, torch.cat([part[1] for part in alone]), **TIGHT)


def test_converged_and_other_replicas_do_not_mix(backend):
    hard = frustrated_field()
    scale = torch.tensor([0.05, 1.0, 0.1], dtype=DTYPE)[:, None, None, None]
    field = PairwiseField(hard.edge_index, hard.node, scale * hard.edge)
    options = {"max_sweeps": 60, "tolerance": 1e-10}
    (node, edge), beliefs = gradients(field, backend, loss=lambda b: b.node[..., 0].exp().sum(), **options)
    assert beliefs.converged.flatten().tolist() == [True, False, True]
    sums = torch.zeros_like(node)
    for number in range(3):
        single = PairwiseField(field.edge_index, field.node, field.edge[number])
        part = gradients(single, backend, loss=lambda b: b.node[..., 0].exp().sum(), **options)[0]
        sums += part[0]
        assert_close(edge[number], part[1], **TIGHT)
    assert_close(node, sums, **TIGHT)


@pytest.mark.parametrize("sweeps", [2, 300])
def test_forbidden_entries(backend, sweeps):
    field = ring_field(scale=0.5).forbid([(0, 1)])
    node = field.node.clone()
    node[0, 2] = node[1, :2] = -torch.inf
    field = field.with_potentials(node=node)
    expected, found = (gradients(field, name, max_sweeps=sweeps)[0] for name in ("reference", backend))
    for ours, theirs in zip(found, expected, strict=True):
        assert bool(ours.isfinite().all())
        assert_close(ours, theirs, **TIGHT)


def test_fields_without_edges(backend):
    field = PairwiseField(torch.empty(2, 0, dtype=torch.long), noise(3, 2), noise(0, 2, 2))
    (node, _), _ = gradients(field, backend)
    assert_close(node, gradients(field, "reference")[0][0], **TIGHT)


def test_single_precision(backend):
    field = ring_field(scale=0.5)
    single = PairwiseField(field.edge_index, field.node.float(), field.edge.float())
    found, beliefs = gradients(single, backend)
    assert bool(beliefs.converged)
    for ours, theirs in zip(found, gradients(field, "reference")[0], strict=True):
        assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-4)


def test_only_tensors_that_require_a_gradient_get_one(backend):
    field = ring_field()
    edge = field.edge.clone().requires_grad_()
    beliefs = propagate(field.with_potentials(edge=edge), backend=backend)
    beliefs.node[0, 0].backward()
    assert_close(edge.grad, gradients(field, "reference", loss=lambda b: b.node[0, 0])[0][1], **TIGHT)
    with torch.no_grad():
        assert not propagate(field.with_potentials(edge=edge), backend=backend).node.requires_grad


def test_second_derivatives_are_refused(backend):
    field = ring_field()
    node = field.node.clone().requires_grad_()
    beliefs = propagate(field.with_potentials(node=node), backend=backend)
    with pytest.raises(OptionError, match="first derivatives only"):
        torch.autograd.grad(beliefs.node[0, 0], node, create_graph=True)
    beliefs = propagate(field.with_potentials(node=node), backend="reference")
    (first,) = torch.autograd.grad(beliefs.node[0, 0], node, create_graph=True)
    assert bool(torch.autograd.grad(first[0, 0], node)[0].any())


# ---- memory


class SavedBytes:
    """Bytes that autograd holds for backward passes, now and at the peak. Shared memory counts once."""

    def __init__(self):
        self.live, self.peak, self.held = 0, 0, {}

    def pack(self, tensor):
        meter, storage = self, tensor.untyped_storage()

        class Held:
            def __init__(self):
                self.tensor, key = tensor, storage.data_ptr()
                count = meter.held.get(key, 0)
                meter.held[key] = count + 1
                if not count:
                    meter.live += storage.nbytes()
                    meter.peak = max(meter.peak, meter.live)

            def __del__(self):
                key = storage.data_ptr()
                meter.held[key] -= 1
                if not meter.held[key]:
                    meter.live -= storage.nbytes()

        return Held()

    def measure(self, run):
        with torch.autograd.graph.saved_tensors_hooks(self.pack, lambda held: held.tensor):
            run()
        return self.peak


def test_memory_for_200_sweeps():
    """Memory of plain unrolling grows with the sweeps, that of segments with their root, that of a fixed point not."""
    field = ring_field(length=200, states=4, scale=0.5)

    def peak(backend, sweeps, tolerance):
        options = {"max_sweeps": sweeps, "tolerance": tolerance, "loss": lambda b: b.node[:, 0].exp().sum()}
        return SavedBytes().measure(lambda: gradients(field, backend, **options))

    unrolled, stretched, implicit = peak("reference", 200, 0.0), peak("auto", 200, 0.0), peak("auto", 200, 1e-12)
    assert propagate(field, max_sweeps=200).converged
    assert unrolled > 10 * stretched > 50 * implicit
    assert peak("auto", 400, 1e-12) == implicit
    assert peak("auto", 400, 0.0) < 1.6 * stretched
    assert _unrolling.SEGMENT**2 > 200
