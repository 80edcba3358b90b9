"""How pseudomarginals combine into potentials, at ordinary and at extreme probabilities."""

import math

import pytest
import torch
from torch.testing import assert_close

from accord import PairwiseField, propagate
from accord.errors import FieldError, OptionError
from accord.field import Combination, Pseudomarginals, symmetrise

INDEX = torch.tensor([[0, 1], [1, 2]])
GENERATOR = torch.Generator().manual_seed(0)
NODE = torch.randn(3, 2, generator=GENERATOR, dtype=torch.float64)
EDGE = torch.randn(2, 2, 2, generator=GENERATOR, dtype=torch.float64)


def test_paper_potentials():
    marginals = Pseudomarginals.from_logits(NODE, EDGE)
    field = Combination(normaliser="node").field(marginals, INDEX)
    tau_s, tau_st = NODE.softmax(-1), EDGE.flatten(1).softmax(-1).view(2, 2, 2)
    assert_close(field.node, tau_s.log())
    assert_close(field.edge, (tau_st / (tau_s[INDEX[0]][:, :, None] * tau_s[INDEX[1]][:, None, :])).log())


@pytest.mark.parametrize("power", [0.0, 0.1, 0.5, 1.0])
def test_own_sums_to_a_power(power):
    marginals = Pseudomarginals.from_logits(NODE, EDGE)
    field = Combination(normaliser="own", power=power, node_weight=0.7).field(marginals, INDEX)
    table = marginals.edge.exp()
    expected = table / (table.sum(-1)[:, :, None] * table.sum(-2)[:, None, :]) ** power
    assert_close(field.edge, expected.log())
    assert_close(field.node, 0.7 * marginals.node)


@pytest.mark.parametrize("normaliser", ["node", "own"])
@pytest.mark.parametrize("power", [0.3, torch.tensor([0.3, 1.0])])
def test_fields_with_and_without_gradients_have_the_same_bits(normaliser, power):
    edge = EDGE.masked_fill(EDGE > 1, -torch.inf)
    plain, recorded = (Pseudomarginals.from_logits(NODE, table) for table in (edge, edge.clone().requires_grad_()))
    before = plain.edge.clone(), plain.node.clone()
    choice = Combination(normaliser=normaliser, power=power)
    assert torch.equal(choice.field(plain, INDEX).edge, choice.field(recorded, INDEX).edge.detach())
    assert torch.equal(plain.edge, before[0]) and torch.equal(plain.node, before[1])


def test_sharpness_multiplies_edge_scores_before_the_softmax():
    sharp = Pseudomarginals.from_logits(NODE, EDGE, sharpness=10.0)
    assert_close(sharp.edge, (10 * EDGE).flatten(1).log_softmax(-1).view(2, 2, 2))
    assert_close(sharp.node, NODE.log_softmax(-1))


def test_choices_as_replicas_equal_choices_one_by_one():
    sharpness, power = torch.tensor([0.2, 1.0, 10.0]), torch.tensor([1.0, 0.5, 0.1])
    weight = torch.tensor([1.0, 0.5, 2.0])
    together = Combination(power=power, node_weight=weight).field(
        Pseudomarginals.from_logits(NODE, EDGE, sharpness), INDEX
    )
    assert together.replicas == (3,)
    for r in range(3):
        alone = Combination(power=float(power[r]), node_weight=float(weight[r])).field(
            Pseudomarginals.from_logits(NODE, EDGE, float(sharpness[r])), INDEX
        )
        assert_close(together.edge[r], alone.edge, rtol=0, atol=1e-6)
        assert_close(together.node[r], alone.node, rtol=0, atol=1e-6)


@pytest.mark.parametrize("normaliser", ["node", "own"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_of_zero_and_one_are_safe(normaliser, dtype):
    node = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], dtype=dtype)
    edge = torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]], dtype=dtype)
    field = Combination(normaliser=normaliser).field(Pseudomarginals.from_probabilities(node, edge), INDEX)
    assert bool(field.node.isfinite().all()) and bool(field.edge.isfinite().all())
    beliefs = propagate(field)
    assert not bool(beliefs.node.isnan().any()) and not bool(beliefs.edge.isnan().any())


@pytest.mark.parametrize("normaliser", ["node", "own"])
def test_scores_of_minus_infinity_stay_forbidden(normaliser):
    node, edge = NODE.clone(), EDGE.clone()
    node[0, 1] = -torch.inf
    edge[0, 1, :] = -torch.inf
    for sharpness in (0.0, 1.0):
        field = Combination(normaliser=normaliser, node_weight=0.0).field(
            Pseudomarginals.from_logits(node, edge, sharpness), INDEX
        )
        assert float(field.node[0, 1]) == -torch.inf and bool((field.edge[0, 1] == -torch.inf).all())
        assert not bool(field.edge.isnan().any())
        assert bool(field.edge[1].isfinite().all())


def test_own_sums_with_flat_node_evidence_reproduce_the_edge_table():
    """Two nodes, one edge: dividing by the own sums and multiplying by matching node marginals gives tau_st back."""
    table = EDGE[:1].flatten(1).softmax(-1).view(1, 2, 2)
    node = torch.stack([table[0].sum(-1), table[0].sum(-2)])
    field = Combination().field(Pseudomarginals.from_probabilities(node, table), INDEX[:, :1])
    assert isinstance(field, PairwiseField)
    assert_close(propagate(field).edge.exp(), table)


def test_symmetrise_averages_both_directions():
    forward, backward = EDGE, torch.randn(2, 2, 2, generator=GENERATOR, dtype=torch.float64)
    table = symmetrise(forward, backward)
    assert_close(table, (forward + backward.transpose(1, 2)) / 2)
    assert_close(symmetrise(backward, forward), table.transpose(1, 2))
    with pytest.raises(FieldError, match="both directions"):
        symmetrise(forward, backward[:1])


def test_bad_choices_are_refused():
    marginals = Pseudomarginals.from_logits(NODE, EDGE)
    with pytest.raises(OptionError, match="Choose one of"):
        Combination(normaliser="rows").field(marginals, INDEX)
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="power"):
            Combination(power=bad).field(marginals, INDEX)
        with pytest.raises(OptionError, match="sharpness"):
            Pseudomarginals.from_logits(NODE, EDGE, sharpness=bad)
    with pytest.raises(FieldError, match="between 0 and 1"):
        Pseudomarginals.from_probabilities(NODE, EDGE)


def test_shrunk_potentials_are_bounded_by_the_share():
    """Whatever the networks say: rare states are divided by their own vanishing sums."""
    generator = torch.Generator().manual_seed(0)
    node, edge = 300 * torch.randn(6, 4, generator=generator), 300 * torch.randn(5, 4, 4, generator=generator)
    path = torch.stack([torch.arange(5), torch.arange(1, 6)])
    marginals = Pseudomarginals.from_logits(node, edge)
    assert float(Combination().field(marginals, path).edge.abs().max()) > 100
    for share in (0.5, 0.01, 1e-6):
        field = Combination().field(marginals.shrunk(share, share), path)
        assert float(field.edge.min()) >= math.log(share) - 1e-4
        assert float(field.edge.max()) <= math.log(4 / share) + 1e-4
        assert float(field.node.min()) >= math.log(share / 4) - 1e-4
    assert float(Combination().field(marginals.shrunk(1.0, 1.0), path).edge.abs().max()) < 1e-5


def test_shrinking_by_nothing_changes_nothing_and_forbidden_stays_forbidden():
    node, edge = torch.randn(2, 3, 3), torch.randn(2, 2, 3, 3)
    node[..., 1], edge[..., 1, :], edge[..., :, 1] = -torch.inf, -torch.inf, -torch.inf
    marginals = Pseudomarginals.from_logits(node, edge)
    same, shrunk = marginals.shrunk(0.0, 0.0), marginals.shrunk(torch.tensor([0.1, 0.2]), 0.3)
    assert torch.equal(same.node, marginals.node) and torch.equal(same.edge, marginals.edge)
    assert torch.equal(shrunk.node == -torch.inf, node == -torch.inf)
    assert torch.equal(shrunk.edge == -torch.inf, edge == -torch.inf)
    by_hand = torch.lerp(marginals.node[1].exp(), torch.tensor(1 / 3), torch.tensor(0.2)).log()
    assert_close(shrunk.node[1][:, [0, 2]], by_hand[:, [0, 2]])
    for wrong in (1.5, torch.tensor([0.0, 0.1]), -0.1):
        with pytest.raises(OptionError, match="shrunk"):
            marginals.shrunk(wrong, 0.1)
