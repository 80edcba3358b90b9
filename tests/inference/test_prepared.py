"""A prepared solver gives what `propagate` gives, to the bit, for every call."""

import copy

import pytest
import torch

from accord import PairwiseField, propagate
from accord.errors import FieldError, InputError, InputTypeError, OptionError
from accord.inference import Propagation

RING = torch.tensor([[0, 1, 2, 3, 0, 5, 6], [1, 2, 3, 0, 2, 6, 7]])
GRAPH = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1])
OPTIONS = [
    {},
    {"semiring": "max"},
    {"damping": 0.3, "max_sweeps": 7},
    {"edge_appearance": 0.6, "tolerance": 1e-3},
    {"edge_appearance": "spanning"},
    {"edge_appearance": torch.linspace(0.4, 1.0, 7)},
    {"backend": "reference"},
    {"schedule": "sequential"},
]


def potentials(seed, *replicas, dtype=torch.float32, states=3):
    generator = torch.Generator().manual_seed(seed)
    node = torch.randn(*replicas, 8, states, generator=generator, dtype=dtype)
    return node, torch.randn(*replicas, 7, states, states, generator=generator, dtype=dtype)


def assert_same(found, expected):
    for name in ("messages", "converged", "sweeps", "residual", "node", "edge", "log_partition"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), name
    assert torch.equal(found.decode(), expected.decode())
    assert found.backend == expected.backend


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("graph", [None, GRAPH], ids=["one", "two"])
def test_every_call_equals_propagate(options, graph):
    field = PairwiseField(RING, *potentials(0), graph)
    solver = Propagation(field, **options)
    assert_same(solver(), propagate(field, **options))
    # Other values, then another form of potentials, and the first form again.
    forms = [(1, {}), (2, {"dtype": torch.float64}), (3, {"states": 2}), (4, {})]
    for node, edge in (potentials(seed, **more) for seed, more in forms):
        assert_same(solver(node, edge), propagate(field.with_potentials(node, edge), **options))
    node, edge = potentials(5, 2)
    assert_same(solver(node, edge), propagate(field.with_potentials(node, edge), **options))
    node, edge = potentials(6)
    assert_same(solver(node=node), propagate(field.with_potentials(node=node), **options))
    assert_same(solver(edge=edge), propagate(field.with_potentials(edge=edge), **options))


def test_a_call_can_start_from_an_earlier_one():
    field = PairwiseField(RING, *potentials(0))
    solver = Propagation(field)
    first, (node, edge) = solver(), potentials(1)
    assert_same(solver(node, edge, start=first), propagate(field.with_potentials(node, edge), start=first))


@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_gradients_equal_those_of_propagate(options):
    field = PairwiseField(RING, *potentials(0))
    solver = Propagation(field, **options)
    found, expected = [], []
    for run, gradients in (
        (solver, found),
        (lambda node, edge: propagate(field.with_potentials(node, edge), **options), expected),
    ):
        for seed in (1, 2):
            leaves = [values.requires_grad_() for values in potentials(seed)]
            beliefs = run(*leaves)
            gradients += torch.autograd.grad(beliefs.node[:, 0].sum() + beliefs.log_partition.sum(), leaves)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_gradients_reach_the_edge_appearance_at_every_call():
    field = PairwiseField(RING, *potentials(0))
    appearance = torch.full((7,), 0.6, requires_grad=True)
    with torch.no_grad():
        solver = Propagation(field, edge_appearance=appearance)
        solver()
    (expected,) = torch.autograd.grad(propagate(field, edge_appearance=appearance).node[:, 0].sum(), appearance)
    for _ in range(2):
        (found,) = torch.autograd.grad(solver().node[:, 0].sum(), appearance)
        assert torch.equal(found, expected)


def test_tensors_changed_in_place_count():
    index, appearance = RING.clone(), torch.full((7,), 0.6)
    field = PairwiseField(index, *potentials(0))
    solver = Propagation(field, edge_appearance=appearance)
    solver()
    field.node.mul_(2.0)
    appearance.fill_(0.9)
    index[:, 4] = torch.tensor([1, 3])
    node, edge = potentials(1)
    assert_same(solver(), propagate(PairwiseField(index, field.node, field.edge), edge_appearance=appearance))
    assert_same(solver(node, edge), propagate(PairwiseField(index, node, edge), edge_appearance=appearance))
    appearance.fill_(2.0)
    with pytest.raises(OptionError, match="must lie in"):
        solver()
    index[:, 4] = torch.tensor([1, 2])
    with pytest.raises(InputError, match="changed after it was built"):
        solver()


def test_options_are_checked_when_it_is_made():
    field = PairwiseField(RING, *potentials(0))
    for options, message in (
        ({"semiring": "min"}, "semiring 'min'"),
        ({"damping": 1.0}, "damping is 1"),
        ({"backend": "fast"}, "backend 'fast'"),
        ({"schedule": "any"}, "schedule 'any'"),
    ):
        with pytest.raises(OptionError, match=message):
            Propagation(field, **options)
    with pytest.raises(InputTypeError, match="not a PairwiseField"):
        Propagation(RING)


def test_potentials_are_checked_at_every_call():
    solver = Propagation(PairwiseField(RING, *potentials(0)), edge_appearance=0.001)
    node, edge = potentials(1)
    with pytest.raises(FieldError, match="NaN"):
        solver(node=node / 0 * 0)
    with pytest.raises(FieldError, match="8 nodes, the new node potentials 7"):
        solver(node=node[:7])
    with pytest.raises(OptionError, match="quotients overflow"):
        solver(edge=edge * 1e31)


def test_propagate_keeps_what_the_last_run_prepared():
    field = PairwiseField(RING, *potentials(0))
    first = propagate(field)
    prepared = field.structure.prepared
    assert_same(propagate(field), first)
    other = field.with_potentials(*potentials(1))
    assert_same(propagate(other), propagate(PairwiseField(RING, *potentials(1))))
    assert field.structure.prepared is prepared
    assert_same(propagate(copy.deepcopy(field)), first)
    for options in OPTIONS:
        assert_same(propagate(field, **options), propagate(PairwiseField(RING, *potentials(0)), **options))
    assert_same(propagate(field.to(torch.float64)), propagate(PairwiseField(RING, *potentials(0)).to(torch.float64)))
    for options, message in (({"damping": 1.0}, "damping is 1"), ({"edge_appearance": 2.0}, "must lie in")):
        with pytest.raises(OptionError, match=message):
            propagate(field, **options)
    assert_same(propagate(field), first)
