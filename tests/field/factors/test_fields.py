"""Fields with factors: what they accept, scores, clamps, and the forms that compiled code uses."""

import pytest
import torch
from hypothesis import assume, given
from support.factor_cases import DTYPE, enumerated, factor_fields, labellings
from support.strategies import fields
from torch.testing import assert_close

from accord import AutomatonFactors, FactorField, OrFactors, PairwiseField, PottsFactors, TableFactors
from accord.errors import FieldError, GraphError, InfeasibleError, InputTypeError
from accord.field.factors import flatten, from_pairwise, tabulate, to_pairwise


def score_of(flat, labels):
    """Scores [R] of one labelling, straight from the definition of the flat form."""
    total = sum(flat.unary[:, flat.at[v] + labels[v]] for v in range(flat.num_nodes))
    for factor in range(flat.num_factors):
        place = int(flat.table_at[factor])
        row = 0
        for variable in flat.scope[flat.scope_at[factor] : flat.scope_at[factor + 1]].tolist():
            row = row * int(flat.states[variable]) + labels[variable]
        total = total + flat.tables[:, place + row]
    return total


@given(factor_fields(rules=False, max_nodes=4))
def test_flat_form_scores_like_the_field(field):
    flat = flatten(field)
    for labels in labellings(field)[:20]:
        assert_close(score_of(flat, labels.tolist()), field.score(labels)[..., 0].reshape(-1))


@given(factor_fields(max_nodes=5, max_order=3))
def test_rules_as_tables_keep_partition_and_marginals(field):
    total, node = enumerated(field)
    whole = tabulate(field)
    assume(int(whole.states.prod()) <= 20_000)
    again, wide = enumerated(whole)
    assert_close(again, total)
    own = wide[..., : field.num_nodes, : field.num_states]
    assert_close(own.nan_to_num(neginf=-99), node.nan_to_num(neginf=-99))


@pytest.mark.parametrize("num_states", [1, 2, 3])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_potts_scores_agreement_of_a_whole_clique(order, num_states):
    weight = torch.randn(1, num_states, dtype=DTYPE)
    field = FactorField(
        torch.zeros(order, num_states, dtype=DTYPE), [PottsFactors(torch.arange(order)[None], weight, num_states)]
    )
    for labels in labellings(field):
        agree = bool((labels == labels[0]).all())
        assert_close(field.score(labels)[0], weight[0, labels[0]] if agree else torch.zeros((), dtype=DTYPE))


def test_rules_allow_what_their_names_say():
    from accord import AndFactors, AtMostOneFactors, ParityFactors

    meanings = {
        OrFactors: lambda first, rest: first == int(any(rest)),
        AndFactors: lambda first, rest: first == int(all(rest)),
        AtMostOneFactors: lambda first, rest: first + sum(rest) <= 1,
        ParityFactors: lambda first, rest: (first + sum(rest)) % 2 == 0,
    }
    for kind, allowed in meanings.items():
        field = FactorField(torch.zeros(4, 2), [kind(torch.arange(4)[None])])
        for labels in labellings(field):
            first, *rest = labels.tolist()
            assert (float(field.score(labels)) == 0.0) == allowed(first, rest), (kind, labels)
    odd = FactorField(torch.zeros(3, 2), [ParityFactors(torch.arange(3)[None], odd=True)])
    assert [float(odd.score(labels)) == 0 for labels in labellings(odd)] == [
        sum(labels.tolist()) % 2 == 1 for labels in labellings(odd)
    ]


def test_ragged_fields_keep_tables_as_they_are():
    node = [torch.randn(2), torch.randn(5), torch.randn(3)]
    edge = [torch.randn(2, 5), torch.randn(3, 5)]
    field = PairwiseField.ragged(torch.tensor([[0, 2], [1, 1]]), node, edge)
    assert field.num_states == 5 and field.states.tolist() == [2, 5, 3]
    assert all(torch.equal(kept, given) for kept, given in zip(field.edge, edge, strict=True))
    assert sum(group.values.numel() for group in field.groups) == 10 + 15
    expected = node[0][1] + node[1][4] + node[2][0] + edge[0][1, 4] + edge[1][0, 4]
    assert_close(field.score(torch.tensor([1, 4, 0]))[0], expected)
    assert float(field.score(torch.tensor([2, 4, 0]))[0]) == -torch.inf  # a state that node 0 does not have
    clamped = field.clamp(torch.tensor([-1, 3, -1]))
    assert type(clamped) is type(field) and clamped.num_edges == 2
    with pytest.raises(InfeasibleError, match="forbids or that it does not have"):
        field.clamp(torch.tensor([4, -1, -1]))


def test_tensors_changed_in_place_are_checked_again():
    field = FactorField(torch.zeros(2, 2), [TableFactors(torch.tensor([[0, 1]]), torch.zeros(1, 2, 2))])
    field.groups[0].values[0, 0, 0] = torch.nan
    with pytest.raises(FieldError, match="changed after it was built"):
        field.check_changes("propagate")


TWO = torch.tensor([[0, 1]])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: TableFactors(torch.tensor([[0, 0]]), torch.zeros(1, 2, 2)), GraphError, "names a variable twice"),
        (lambda: TableFactors(torch.tensor([0, 1]), torch.zeros(1, 2, 2)), GraphError, "one row of variables"),
        (lambda: TableFactors(TWO, torch.zeros(2, 2)), FieldError, "2 axes of states"),
        (lambda: TableFactors(TWO, torch.zeros(3, 2, 2)), FieldError, "1 factors but 3 tables"),
        (lambda: TableFactors(TWO, torch.zeros(1, 2, 2).half()), InputTypeError, "float32 or float64"),
        (lambda: TableFactors(TWO, torch.full((1, 2, 2), torch.inf)), FieldError, "hold +inf"),
        (lambda: TableFactors(TWO, torch.zeros(1, 2, 2), torch.tensor([1])), FieldError, "names tables 1 to 1"),
        (lambda: AutomatonFactors(TWO, torch.tensor([[0, 3]]), torch.zeros(1)), FieldError, "lead to states"),
        (lambda: AutomatonFactors(TWO, torch.tensor([[0, 0]]), torch.zeros(2)), FieldError, "one score for each"),
        (lambda: PottsFactors(TWO, torch.zeros(3), 2), FieldError, "weight has shape"),
        (lambda: FactorField(torch.zeros(2, 0)), FieldError, "no states"),
        (lambda: FactorField(torch.zeros(2, 2), num_states=torch.tensor([1, 3])), FieldError, "runs from 1 to 3"),
        (lambda: FactorField(torch.zeros(1, 2), [OrFactors(TWO)]), GraphError, "names variable 1"),
        (lambda: FactorField(torch.zeros(2, 3), [OrFactors(TWO)]), FieldError, "has 2 states, but variable 0"),
        (lambda: FactorField(torch.zeros(2, 2), ["or"]), InputTypeError, "not a group of factors"),
        (
            lambda: FactorField(torch.zeros(2, 2), [OrFactors(TWO)], graph=torch.tensor([0, 1])),
            GraphError,
            "joins graphs of the batch",
        ),
        (
            lambda: FactorField(torch.zeros(2, 2).double(), [TableFactors(TWO, torch.zeros(1, 2, 2))]),
            InputTypeError,
            "Convert one of them",
        ),
        (
            lambda: PairwiseField.ragged(TWO.t(), [torch.zeros(2)] * 2, [torch.zeros(2, 3)]),
            FieldError,
            "its ends 0 and 1 have",
        ),
        (lambda: PairwiseField.ragged(TWO.t(), torch.zeros(2, 2), [torch.zeros(2, 2)]), InputTypeError, "not a list"),
        (
            lambda: PairwiseField.ragged(TWO.t(), [torch.zeros(2), torch.zeros(2).double()], [torch.zeros(2, 2)]),
            InputTypeError,
            "Convert them to one kind",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


@given(factor_fields(max_nodes=4, max_order=3))
def test_pairwise_form_keeps_partition_and_marginals(field):
    pairs = to_pairwise(field)
    assume(int(pairs.states.prod()) <= 50_000)
    total, node = enumerated(field)
    again, wide = enumerated(pairs)
    assert_close(again, total)
    own = wide[..., : field.num_nodes, : field.num_states].exp()
    assert_close(own, node[..., : own.shape[-1]].exp())


@given(fields(max_nodes=4))
def test_edges_become_factors(field):
    factors = from_pairwise(field)
    labels = torch.randint(field.num_states, (3, *(1,) * len(field.replicas), field.num_nodes))
    assert_close(factors.score(labels), field.score(labels))
