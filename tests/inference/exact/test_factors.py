"""Exact inference on fields with factors: elimination, compiled and in torch, against enumeration."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.exact_cases import EXACT, chain, complete, random_field
from inference.factor_cases import factor_fields
from support.strategies import DTYPE
from torch.testing import assert_close

from accord import FactorField, OrFactors, PairwiseField, TableFactors, enumerate_beliefs
from accord.errors import InfeasibleError, TooLargeError
from accord.inference import eliminate_beliefs, sample_exact
from accord.inference.exact import _native

SEMIRINGS = st.sampled_from(["sum", "max"])
WAYS = ["compiled", "torch"]


@pytest.fixture
def without_kernel(monkeypatch):
    monkeypatch.setattr(_native, "available", lambda: False)


def assert_same_beliefs(found, wanted):
    assert_close(found.log_partition, wanted.log_partition, **EXACT)
    assert_close(found.node, wanted.node, **EXACT)
    assert len(found.factors) == len(wanted.factors)
    for one, two in zip(found.factors, wanted.factors, strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            assert_close(one, two, **EXACT)
    assert found.labels.shape == wanted.labels.shape
    assert_close(found.field.score(found.decode()), found.field.score(wanted.decode()), **EXACT)


def in_torch(field, semiring="sum"):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "available", lambda: False)
        return eliminate_beliefs(field, semiring)


def drawn_field(seed, replicas=1, num_graphs=2, **options):
    return factor_fields(num_graphs, seed, replicas=replicas, feasible=True, **options)[0]


# Enumeration against its definition.


def test_enumeration_adds_up_probabilities_of_labellings():
    field = drawn_field(0, num_graphs=1, forbidden=False)
    total = enumerate_beliefs(field)
    every = torch.tensor(list(itertools.product(*(range(count) for count in field.states.tolist()))))
    probability = (field.score(every)[:, 0] - total.log_partition).exp()
    assert_close(probability.sum(), torch.tensor(1.0, dtype=DTYPE))
    for variable, count in enumerate(field.states.tolist()):
        for state in range(count):
            share = probability[every[:, variable] == state].sum()
            assert_close(total.node[variable, state].exp(), share, **EXACT)
        assert bool((total.node[variable, count:] == -torch.inf).all())
    for group, beliefs in zip(field.groups, total.factors, strict=True):
        if not isinstance(group, TableFactors):
            assert beliefs is None
            continue
        for row, scope in enumerate(group.scope.tolist()):
            for states in itertools.product(*(range(size) for size in group.shape)):
                share = probability[(every[:, scope] == torch.tensor(states)).all(1)].sum()
                assert_close(beliefs[row][states].exp(), share, **EXACT)


# Elimination against enumeration.


@settings(max_examples=60)
@given(st.integers(0, 10**6), SEMIRINGS, st.sampled_from([1, 3]))
def test_elimination_equals_enumeration(seed, semiring, replicas):
    field = drawn_field(seed, replicas)
    wanted = enumerate_beliefs(field, semiring)
    assert_same_beliefs(eliminate_beliefs(field, semiring), wanted)
    assert_same_beliefs(in_torch(field, semiring), wanted)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.data())
def test_clamped_variables(seed, data):
    field = drawn_field(seed)
    best = enumerate_beliefs(field, "max").decode()
    free = torch.tensor(data.draw(st.lists(st.booleans(), min_size=field.num_nodes, max_size=field.num_nodes)))
    clamped = field.clamp(torch.where(free, -1, best))
    wanted = enumerate_beliefs(clamped)
    assert_same_beliefs(eliminate_beliefs(clamped), wanted)
    assert_same_beliefs(in_torch(clamped), wanted)


@pytest.mark.parametrize("seed", range(4))
def test_infeasible_graphs_are_named(seed):
    field, best = factor_fields(40, seed)
    barred = (torch.tensor(best[0]) == -torch.inf).nonzero().flatten().tolist()
    assert barred
    for way in (eliminate_beliefs, in_torch):
        with pytest.raises(InfeasibleError, match=f"graph {barred[0]} has no labelling"):
            way(field)
    with pytest.raises(InfeasibleError, match="graph"):
        enumerate_beliefs(field)
    with pytest.raises(InfeasibleError, match=f"graph {barred[0]} has no labelling"):
        sample_exact(field)


def test_a_thousand_graphs_at_once():
    field, best = factor_fields(1000, seed=7, feasible=True)
    found = eliminate_beliefs(field, "max")
    assert_close(found.log_partition, torch.tensor(best[0]), **EXACT)
    assert_close(field.score(found.decode()), found.log_partition, **EXACT)


def test_pairwise_fields_and_their_factors_are_the_same():
    field = random_field(torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]]), 5, 3)
    factors = FactorField(field.node, [TableFactors(field.edge_index.t(), field.edge)])
    found, wanted = eliminate_beliefs(factors), eliminate_beliefs(field)
    assert_close(found.node, wanted.node, **EXACT)
    assert_close(found.factors[0], wanted.edge, **EXACT)
    with pytest.raises(AttributeError, match="factors"):
        _ = found.edge
    ragged = PairwiseField.ragged(field.edge_index, list(field.node), list(field.edge))
    for one, two in zip(eliminate_beliefs(ragged).edge, wanted.edge, strict=True):
        assert_close(one, two, **EXACT)


def test_a_long_rule_costs_no_more_than_a_chain():
    size = 3000
    node = torch.zeros(size, 2, dtype=DTYPE)
    found = eliminate_beliefs(FactorField(node, [OrFactors(torch.arange(size)[None])]))
    # Either all are 0, or the first is 1 and any of the others.
    assert_close(found.log_partition, torch.tensor([(size - 1) * torch.log(torch.tensor(2.0, dtype=DTYPE))]))
    assert found.factors == (None,)


def test_single_precision_is_computed_in_double():
    field = drawn_field(3)
    single, double = eliminate_beliefs(field.to(torch.float32)), eliminate_beliefs(field)
    assert single.node.dtype == torch.float32
    assert_close(single.node.double(), double.node, rtol=0, atol=1e-5)


# Limits.


def test_only_states_of_their_own_count():
    counts = torch.tensor([2, 2, 2, 2, 9])
    scope = torch.arange(5)[None]
    node = torch.zeros(5, 9, dtype=DTYPE)
    field = FactorField(node, [TableFactors(scope, torch.zeros(1, 2, 2, 2, 2, 9, dtype=DTYPE))], num_states=counts)
    assert_close(eliminate_beliefs(field, max_table=144).log_partition, torch.tensor([144.0], dtype=DTYPE).log())
    for way in (eliminate_beliefs, lambda f, max_table: _limited(f, max_table)):
        with pytest.raises(TooLargeError, match=r"clique of 5 nodes, and 2\*\*4 \* 9\*\*1 states.*max_table = 143"):
            way(field, max_table=143)
    barred = field.with_potentials(node=node.index_fill(1, torch.tensor([8]), -torch.inf))
    assert_close(eliminate_beliefs(barred, max_table=128).log_partition, torch.tensor([128.0], dtype=DTYPE).log())


def _limited(field, max_table):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_native, "available", lambda: False)
        return eliminate_beliefs(field, max_table=max_table)


def test_wide_fields_are_refused():
    index = complete(30)
    field = FactorField(torch.zeros(30, 2), [TableFactors(index.t(), torch.zeros(1, 2, 2))])
    with pytest.raises(TooLargeError, match="clique of 30 nodes"):
        eliminate_beliefs(field)
    with pytest.raises(TooLargeError, match="sample_exact: elimination meets"):
        sample_exact(field)


# Samples.


@pytest.mark.parametrize("way", WAYS)
def test_samples_follow_the_joint_distribution(way, request):
    if way == "torch":
        request.getfixturevalue("without_kernel")
    field = drawn_field(11, num_graphs=1)
    every = torch.tensor(list(itertools.product(*(range(count) for count in field.states.tolist()))))
    probability = (field.score(every)[:, 0] - enumerate_beliefs(field).log_partition).exp()
    count = 20_000
    samples = sample_exact(field, count, generator=torch.Generator().manual_seed(0))
    assert samples.shape == (count, field.num_nodes)
    place = torch.zeros(count, dtype=torch.long)
    for variable, states in enumerate(field.states.tolist()):
        place = place * states + samples[:, variable]
    share = torch.bincount(place, minlength=len(every)) / count
    deviation = (probability * (1 - probability) / count).sqrt()
    assert bool(((share - probability).abs() <= 5 * deviation + 1e-12).all())


@pytest.mark.parametrize("way", WAYS)
def test_samples_of_replicas_and_batches(way, request):
    if way == "torch":
        request.getfixturevalue("without_kernel")
    field = drawn_field(5, replicas=3)
    samples = sample_exact(field, 4000, generator=torch.Generator().manual_seed(1))
    assert samples.shape == (4000, 3, field.num_nodes)
    share = torch.nn.functional.one_hot(samples, field.num_states).double().mean(0)
    probability = eliminate_beliefs(field).node.exp()
    assert bool(((share - probability).abs() <= 5 * (probability * (1 - probability) / 4000).sqrt() + 1e-12).all())


# Gradients.


def values_of(field):
    return (field.node, *(group.values for group in field.groups))


def shared_field():
    """Two factors share a table, whose last axis is longer than one of their variables has states; and a rule."""
    generator = torch.Generator().manual_seed(3)

    def table(*shape):
        return torch.randn(*shape, generator=generator, dtype=DTYPE)

    triples = TableFactors(torch.tensor([[0, 1, 2], [1, 3, 4]]), table(1, 2, 2, 3), torch.tensor([0, 0]))
    pair = TableFactors(torch.tensor([[2, 3]]), table(1, 3, 2))
    rule = OrFactors(torch.tensor([[4, 0, 3]]))
    return FactorField(table(5, 3), [triples, pair, rule], num_states=torch.tensor([2, 2, 3, 2, 2]))


@pytest.mark.parametrize("output", ["log_partition", "beliefs"])
def test_gradients(output):
    field = shared_field()
    exists = torch.arange(3) < field.states[:, None]

    def solved(node, one, two):
        beliefs = eliminate_beliefs(field.with_potentials(torch.where(exists, node, -torch.inf), [one, two, None]))
        if output == "log_partition":
            return beliefs.log_partition
        return beliefs.node.exp(), beliefs.factors[0].exp(), beliefs.factors[1].exp()

    node = torch.randn(5, 3, dtype=DTYPE, generator=torch.Generator().manual_seed(0)).requires_grad_()
    one, two = (group.values.clone().requires_grad_() for group in field.groups[:2])
    assert torch.autograd.gradcheck(solved, (node, one, two))


def test_gradients_of_gradients():
    field = random_field(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3, 2)

    def total(node, edge):
        return eliminate_beliefs(field.with_potentials(node=node, edge=edge)).log_partition

    assert torch.autograd.gradgradcheck(total, (field.node.requires_grad_(), field.edge.requires_grad_()))


def test_gradient_of_log_partition_is_that_of_torch():
    field = drawn_field(21, replicas=3, forbidden=False, rules=False)
    found = []
    for way in (eliminate_beliefs, in_torch):
        inputs = [values.clone().requires_grad_() for values in values_of(field)]
        way(field.with_potentials(inputs[0], inputs[1:])).log_partition.square().sum().backward()
        found.append([values.grad for values in inputs])
    for one, two in zip(*found, strict=True):
        assert_close(one, two, **EXACT)


def test_gradient_of_the_optimum_points_at_its_labels():
    field = shared_field()
    inputs = [values.clone().requires_grad_() for values in values_of(field)]
    best = eliminate_beliefs(field.with_potentials(inputs[0], inputs[1:]), "max")
    best.log_partition.sum().backward()
    assert_close(inputs[0].grad, torch.nn.functional.one_hot(best.decode(), 3).to(DTYPE), **EXACT)
    for group, given_values in zip(field.groups[:2], inputs[1:3], strict=True):
        wanted = torch.zeros_like(given_values)
        for row, scope in enumerate(group.scope):
            wanted[(int(group.table_of[row]), *best.decode()[scope].tolist())] += 1
        assert_close(given_values.grad, wanted, **EXACT)


# Large fields.


@pytest.mark.parametrize("states", [2, 4])
def test_compiled_equals_torch_on_long_chains(states):
    field = random_field(chain(2000), 2000, states)
    found, wanted = eliminate_beliefs(field), in_torch(field)
    assert_close(found.node, wanted.node, **EXACT)
    assert_close(found.edge, wanted.edge, **EXACT)
    assert_close(found.log_partition, wanted.log_partition, rtol=1e-13, atol=0)
    assert torch.equal(found.labels, wanted.labels)


def test_a_chain_of_two_hundred_thousand_nodes():
    size = 200_000
    generator = torch.Generator().manual_seed(0)
    node, edge = torch.randn(size, 3, generator=generator), torch.randn(size - 1, 3, 3, generator=generator)
    field = PairwiseField(chain(size), node.double(), edge.double())
    beliefs = eliminate_beliefs(field)
    assert_close(beliefs.edge.logsumexp(-1), beliefs.node[:-1], rtol=0, atol=1e-9)
    assert_close(beliefs.edge.logsumexp(-2), beliefs.node[1:], rtol=0, atol=1e-9)
    # The chain rule: log p of a labelling is a sum of conditionals.
    labels = beliefs.decode()
    pair = beliefs.edge[torch.arange(size - 1), labels[:-1], labels[1:]].sum()
    inner = beliefs.node[torch.arange(1, size - 1), labels[1:-1]].sum()
    assert_close(field.score(labels) - beliefs.log_partition, (pair - inner)[None], rtol=0, atol=1e-6)


def test_a_star_of_many_leaves():
    size = 100_000
    index = torch.stack([torch.zeros(size, dtype=torch.long), torch.arange(1, size + 1)])
    field = PairwiseField(index, torch.zeros(size + 1, 2, dtype=DTYPE), torch.zeros(size, 2, 2, dtype=DTYPE))
    found = eliminate_beliefs(field)
    assert_close(found.log_partition, (size + 1) * torch.tensor([2.0], dtype=DTYPE).log())
    assert_close(found.node, torch.full_like(field.node, 0.5).log())


def test_probabilities_far_below_the_smallest_number_keep_their_logs():
    edge = torch.tensor([[[0.0, -900.0], [-900.0, -2000.0]]], dtype=DTYPE).repeat(3, 1, 1)
    field = PairwiseField(chain(4), torch.zeros(4, 2, dtype=DTYPE), edge)
    found, wanted = eliminate_beliefs(field), enumerate_beliefs(field)
    assert_close(found.node, wanted.node, **EXACT)
    assert_close(found.edge, wanted.edge, **EXACT)
