"""Exact beliefs of chains against enumeration, and the compiled kernel against the plain recursions."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.chain_cases import as_leaves, chain_fields, enumerated

from accord import ChainField
from accord.errors import FieldError, InfeasibleError, InputTypeError
from accord.inference import eliminate_beliefs
from accord.inference.chains import _native, solve_chains

close = torch.testing.assert_close
semirings = st.sampled_from(["sum", "max"])
native = pytest.mark.skipif(_native.unavailable() is not None, reason="no compiler")


def compare(found, expected, **tolerances):
    for name in ("log_partition", "node", "edge"):
        close(getattr(found, name), getattr(expected, name), **tolerances)


@given(chain_fields(barred=0.2), semirings, st.booleans())
@settings(max_examples=150)
def test_beliefs_are_those_of_enumeration(field, semiring, compiled):
    node, edge, log_partition = enumerated(field, semiring)
    beliefs = solve_chains(field, semiring, native=compiled)
    close(beliefs.node, node)
    close(beliefs.edge, edge)
    close(beliefs.log_partition, log_partition)
    best = enumerated(field, "max")[2]
    close(field.score(beliefs.decode()), best)
    assert torch.equal(beliefs.decode() >= 0, field.present.expand(beliefs.decode().shape))


@native
@given(chain_fields(max_chains=40, max_length=9, max_states=20, dtype=torch.float32, barred=0.1), semirings)
@settings(max_examples=60)
def test_kernel_in_float32(field, semiring):
    beliefs = solve_chains(field, semiring)
    assert beliefs.backend == "native" and beliefs.node.dtype == torch.float32
    compare(beliefs, solve_chains(field, semiring, native=False), rtol=1e-5, atol=2e-5)


@native
@pytest.mark.parametrize("scale", [20.0, 60.0, 200.0, 1000.0])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("semiring", ["sum", "max"])
def test_potentials_of_any_span(scale, shared, semiring):
    """Beyond 41 nats, scaled numbers of float32 no longer suffice, and the kernel works in logs."""
    generator = torch.Generator().manual_seed(0)
    node, edge = torch.randn(37, 12, 6, generator=generator), torch.randn(37, 11, 6, 6, generator=generator)
    field = ChainField(scale * node, scale * (edge[0, 0] if shared else edge))
    expected = solve_chains(field, semiring, native=False)
    compare(solve_chains(field, semiring), expected, rtol=1e-5, atol=3e-6 * scale)
    if semiring == "sum":
        weight = torch.randn(37, generator=generator)
        for found, wanted in zip(gradients(field, True, weight), gradients(field, False, weight), strict=True):
            close(found, wanted, rtol=1e-4, atol=1e-5 * scale)


@native
def test_neither_direction_may_lose_small_numbers():
    """A state that is unlikely given what lies behind may be the only one that fits what lies ahead."""
    node = torch.zeros(1, 3, 2)
    node[0, 0, 1] = -150.0
    edge = torch.tensor([[0.0, -torch.inf], [-torch.inf, 0.0]])
    field = ChainField(node, edge, end=torch.tensor([-torch.inf, 0.0]))
    beliefs = eliminate_beliefs(field)
    close(beliefs.log_partition, torch.tensor([-150.0]))
    close(beliefs.node, torch.tensor([-torch.inf, 0.0]).expand(1, 3, 2))


def gradients(field, compiled, weight, semiring="sum"):
    field, leaves = as_leaves(field)
    total = (solve_chains(field, semiring, native=compiled).log_partition * weight).sum()
    return torch.autograd.grad(total, leaves, materialize_grads=True)  # tables of chains of length 1 are not used


@native
@given(chain_fields(max_chains=20, max_states=11, barred=0.1), semirings)
@settings(max_examples=60)
def test_gradients_of_the_kernel(field, semiring):
    total = solve_chains(field, semiring).log_partition
    weight = torch.randn(total.shape, dtype=total.dtype, generator=torch.Generator().manual_seed(0))
    found, expected = (gradients(field, compiled, weight, semiring) for compiled in (True, False))
    for one, other in zip(found, expected, strict=True):
        close(one, other)


@pytest.mark.parametrize("edge", [(3, 3), (2, 3, 3), (4, 2, 3, 3), (4, 1, 3, 3)])
def test_gradcheck(edge):
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    inputs = (drawn(4, 3, 3), drawn(*edge), drawn(3), drawn(4, 3))
    lengths = torch.tensor([3, 1, 2, 3])

    def beliefs_of(*given, semiring="sum"):
        return eliminate_beliefs(ChainField(given[0], given[1], lengths, *given[2:]), semiring)

    assert torch.autograd.gradcheck(lambda *given: beliefs_of(*given).log_partition, inputs)
    assert torch.autograd.gradgradcheck(lambda *given: beliefs_of(*given).log_partition, inputs)
    assert torch.autograd.gradcheck(lambda *given: beliefs_of(*given).node[0], inputs)
    assert torch.autograd.gradcheck(lambda *given: beliefs_of(*given).edge[0], inputs)
    assert torch.autograd.gradcheck(lambda *given: beliefs_of(*given, semiring="max").log_partition, inputs)


def test_the_gradient_of_the_log_partition_is_the_marginals():
    field, (node, edge) = as_leaves(ChainField(torch.randn(5, 4, 3), torch.randn(3, 3)))
    beliefs = eliminate_beliefs(field)
    beliefs.log_partition.sum().backward()
    close(node.grad, beliefs.node.detach().exp())
    close(edge.grad, beliefs.edge.detach().exp().sum((0, 1)))


def test_a_batch_gives_what_its_chains_give_alone():
    lengths = torch.randint(1, 8, (50,))
    field = ChainField(torch.randn(50, 7, 4), torch.randn(4, 4), lengths)
    beliefs = eliminate_beliefs(field)
    for chain, length in enumerate(lengths.tolist()):
        alone = eliminate_beliefs(ChainField(field.node[chain : chain + 1, :length], field.edge))
        close(beliefs.node[chain, :length], alone.node[0])
        close(beliefs.log_partition[chain], alone.log_partition[0])
        assert torch.equal(beliefs.decode()[chain, :length], alone.decode()[0])


@native
def test_results_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(_native, "ONE_THREAD_WORK", 0)
    field, leaves = as_leaves(ChainField(torch.randn(100, 5, 7), torch.randn(7, 7), start=torch.randn(7)))
    found = {}
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            total = eliminate_beliefs(field).log_partition
            found[count] = (total.detach(), *torch.autograd.grad(total.sum(), leaves))
    finally:
        torch.set_num_threads(threads)
    for one, three in zip(found[1], found[3], strict=True):
        close(one, three)


def test_long_chains_do_not_drift():
    field = ChainField(torch.full((1, 20_000, 2), 7.3), torch.zeros(2, 2))
    expected = torch.tensor([20_000 * (7.3 + 0.6931472)])
    close(eliminate_beliefs(field).log_partition, expected, rtol=1e-6, atol=0.0)
    close(eliminate_beliefs(field, "max").log_partition, torch.tensor([20_000 * 7.3]), rtol=1e-6, atol=0.0)


def test_potentials_beyond_a_chain_are_ignored():
    node = torch.randn(2, 5, 3)
    lengths = torch.tensor([2, 5])
    other = node.clone()
    other[0, 2:] = -torch.inf
    first, second = (eliminate_beliefs(ChainField(values, torch.zeros(3, 3), lengths)) for values in (node, other))
    close(first.node, second.node)


def test_views_are_read_in_their_own_layout():
    node, edge = torch.randn(5, 4, 3), torch.randn(3, 3)
    plain = eliminate_beliefs(ChainField(node, edge))
    strange = ChainField(node.permute(2, 0, 1).contiguous().permute(1, 2, 0), edge.t().contiguous().t())
    close(eliminate_beliefs(strange).node, plain.node)


@pytest.mark.parametrize("compiled", [True, False])
def test_infeasible_chains_are_named(compiled):
    node = torch.zeros(3, 2, 2)
    node[1, 1] = -torch.inf
    with pytest.raises(InfeasibleError, match="eliminate_beliefs: chain 1 has no labelling"):
        solve_chains(ChainField(node, torch.zeros(2, 2)), "sum", native=compiled)
    with pytest.raises(InfeasibleError, match="chain 1 of replica 1 "):
        solve_chains(ChainField(torch.stack([torch.zeros(3, 2, 2), node]), torch.zeros(2, 2)), "max", native=compiled)


def test_attributes_of_other_beliefs():
    beliefs = eliminate_beliefs(ChainField(torch.randn(2, 3, 4, 5), torch.randn(5, 5)))
    assert bool(beliefs.converged.all()) and not bool(beliefs.sweeps.any()) and not bool(beliefs.residual.any())
    assert beliefs.log_partition.shape == beliefs.converged.shape == (2, 3)


def test_without_a_compiler_the_reference_answers(monkeypatch):
    monkeypatch.setattr(_native, "unavailable", lambda: "no compiler")
    field = ChainField(torch.randn(2, 3, 4), torch.randn(4, 4))
    beliefs = eliminate_beliefs(field, "max")
    assert beliefs.backend == "reference"
    close(field.score(beliefs.decode()), beliefs.log_partition)


def test_changed_tensors_are_checked_again():
    field = ChainField(torch.zeros(2, 3, 4), torch.zeros(4, 4))
    field.node[0, 0, 0] = torch.nan
    with pytest.raises(FieldError, match="eliminate_beliefs: the field's tensors were changed"):
        eliminate_beliefs(field)
    with pytest.raises(InputTypeError, match="eliminate_beliefs: got a int"):
        solve_chains(3, "sum")


def test_beliefs_of_a_field_that_was_changed_later_are_refused():
    field = ChainField(torch.zeros(2, 3, 4), torch.zeros(4, 4))
    beliefs = eliminate_beliefs(field)
    field.edge.add_(1.0)
    with pytest.raises(FieldError, match="changed after it was solved.*solve the field again"):
        beliefs.node  # noqa: B018


@pytest.mark.parametrize("shape", [(4, 5, 3, 3), (5, 3, 3), (2, 1, 1, 3, 3), (2, 4, 5, 3, 3)])
def test_expanded_tables_have_gradients_of_their_own(shape):
    edge = torch.randn(3, 3, dtype=torch.float64)
    field = ChainField(torch.randn(2, 4, 6, 3, dtype=torch.float64), edge)
    weight = torch.ones(2, 4, dtype=torch.float64)
    expected = gradients(field, True, weight)[1]
    wide = edge.expand(shape).detach().requires_grad_()
    total = eliminate_beliefs(field.with_potentials(edge=wide)).log_partition.sum()
    found = torch.autograd.grad(total, wide)[0]
    assert found.shape == shape
    close(found.sum_to_size(3, 3), expected)
    copied = edge.expand(shape).clone().requires_grad_()
    total = eliminate_beliefs(field.with_potentials(edge=copied)).log_partition.sum()
    close(found, torch.autograd.grad(total, copied)[0])


def test_a_batch_without_chains():
    beliefs = eliminate_beliefs(ChainField(torch.zeros(0, 3, 4), torch.zeros(4, 4)))
    assert beliefs.log_partition.shape == (0,) and beliefs.node.shape == (0, 3, 4)
