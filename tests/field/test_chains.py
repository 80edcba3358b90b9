"""Chain fields: shapes, scores, clamping, and the same chains as a pairwise field."""

import pytest
import torch
from hypothesis import given, settings
from inference.chain_cases import chain_fields

from accord import ChainField
from accord.errors import FieldError, InfeasibleError, InputTypeError

close = torch.testing.assert_close
NODE, EDGE = torch.zeros(2, 4, 3), torch.zeros(3, 3)


@given(chain_fields(barred=0.1))
@settings(max_examples=60)
def test_scores_are_those_of_the_pairwise_field(field):
    labels = torch.randint(0, field.num_states, (field.num_chains, field.length))
    graphs = field.to_pairwise()
    assert graphs.num_graphs == field.num_chains and graphs.num_nodes == int(field.lengths.sum())
    close(field.score(labels), graphs.score(labels[field.present]))
    padded = labels.masked_fill(~field.present, -100)
    close(field.score(padded), field.score(labels))


def test_clamped_states_are_the_only_ones():
    field = ChainField(torch.randn(2, 2, 4, 3), EDGE, torch.tensor([4, 2]))
    labels = torch.tensor([[0, -1, 2, -1], [-1, 1, 1, 1]])
    clamped = field.clamp(labels)
    kept = labels >= 0
    kept[1, 2:] = False  # beyond the chain
    assert torch.equal((clamped.node > -torch.inf).sum(-1)[0], torch.where(kept, 1, 3))
    assert bool(torch.isfinite(clamped.score(labels.clamp_min(0))).all())


def test_shapes_and_properties():
    field = ChainField(torch.zeros(2, 4, 3), torch.zeros(5, 1, 1, 3, 3), torch.tensor([1, 4], dtype=torch.int32))
    assert (field.num_chains, field.length, field.num_states, field.replicas) == (2, 4, 3, (5,))
    assert field.is_ragged and field.lengths.dtype == torch.int64
    assert not ChainField(NODE, EDGE).is_ragged and ChainField(NODE, EDGE).lengths.tolist() == [4, 4]
    assert field.to(torch.float64).edge.dtype == torch.float64
    assert field.to("cpu").lengths.tolist() == [1, 4]


def test_gradient_of_a_shared_table_counts_its_uses():
    edge = torch.zeros(2, 2, requires_grad=True)
    field = ChainField(torch.zeros(1, 4, 2), edge)
    field.score(torch.tensor([[0, 0, 1, 1]])).sum().backward()
    assert edge.grad.tolist() == [[1, 1], [0, 1]]


MESSAGES = {
    "not a tensor": (lambda: ChainField([1.0], EDGE), InputTypeError, "ChainField: node is a list"),
    "two axes": (lambda: ChainField(NODE[0], EDGE), FieldError, r"\[\.\.\., chains, length, states\] is needed"),
    "no states": (lambda: ChainField(NODE[..., :0], EDGE), FieldError, "at least one position"),
    "other states": (lambda: ChainField(NODE, torch.zeros(2, 2)), FieldError, "edge potentials have shape"),
    "other steps": (lambda: ChainField(NODE, torch.zeros(4, 3, 3)), FieldError, r"\[\.\.\., 2, 3, 3, 3\]"),
    "replicas": (
        lambda: ChainField(torch.zeros(2, 2, 4, 3), torch.zeros(3, 1, 1, 3, 3)),
        FieldError,
        "replica axes do not fit",
    ),
    "start": (lambda: ChainField(NODE, EDGE, start=torch.zeros(2)), FieldError, "start potentials have shape"),
    "precision": (lambda: ChainField(NODE, EDGE.double()), InputTypeError, "edge potentials torch.float64"),
    "half": (lambda: ChainField(NODE.half(), EDGE.half()), InputTypeError, "float32 or float64 is needed"),
    "NaN": (lambda: ChainField(NODE, EDGE * torch.nan), FieldError, "edge potentials hold NaN"),
    "+inf": (lambda: ChainField(NODE, EDGE, end=torch.full((3,), torch.inf)), FieldError, "end potentials hold"),
    "lengths": (lambda: ChainField(NODE, EDGE, torch.tensor([4])), FieldError, r"\[chains\] = \[2\]"),
    "length 0": (lambda: ChainField(NODE, EDGE, torch.tensor([0, 4])), FieldError, "must lie in 1 to 4"),
    "too long": (lambda: ChainField(NODE, EDGE, torch.tensor([1, 5])), FieldError, "run from 1 to 5"),
    "float lengths": (lambda: ChainField(NODE, EDGE, torch.ones(2)), InputTypeError, "whole numbers"),
    "labels": (
        lambda: ChainField(NODE, EDGE).score(torch.zeros(2, 3, dtype=torch.long)),
        FieldError,
        r"\[\.\.\., 2, 4\]",
    ),
    "label -1": (
        lambda: ChainField(NODE, EDGE).score(torch.full((2, 4), -1)),
        FieldError,
        "allowed are 0 to 2",
    ),
    "clamped": (
        lambda: ChainField(NODE - torch.tensor([torch.inf, 0, 0]), EDGE).clamp(torch.zeros(2, 4, dtype=torch.long)),
        InfeasibleError,
        "position 0 of chain 0 is clamped",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_errors(name):
    call, error, message = MESSAGES[name]
    with pytest.raises(error, match=message):
        call()
