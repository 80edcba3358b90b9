"""The k best labellings against the scores of all labellings."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.chain_cases import as_leaves, chain_fields

from accord import ChainField
from accord.errors import InputTypeError, OptionError
from accord.inference import eliminate_beliefs, k_best

close = torch.testing.assert_close


def all_scores(field, chain):
    """Scores [*replicas, labellings] of every labelling of one chain."""
    length = int(field.lengths[chain])
    found = []
    for labels in product(range(field.num_states), repeat=length):
        whole = torch.zeros(field.num_chains, field.length, dtype=torch.long)
        whole[chain, :length] = torch.tensor(labels)
        found.append(field.score(whole)[..., chain])
    return torch.stack(found, -1)


@given(chain_fields(max_chains=3, barred=0.2), st.integers(1, 7))
@settings(max_examples=60)
def test_scores_are_the_highest_of_all_labellings(field, k):
    labels, scores = k_best(field, k)
    assert labels.shape == (*field.replicas, field.num_chains, k, field.length)
    for chain in range(field.num_chains):
        every = all_scores(field, chain).sort(-1, descending=True).values[..., :k]
        padded = torch.nn.functional.pad(every, (0, k - every.shape[-1]), value=-torch.inf)
        close(scores[..., chain, :], padded)
    missing = scores == -torch.inf
    assert bool((labels[missing] == -1).all())
    there = field.present[:, None].expand(labels.shape) & ~missing[..., None]
    assert torch.equal(labels >= 0, there)


@given(chain_fields(max_chains=3), st.integers(2, 5))
@settings(max_examples=30)
def test_labellings_differ(field, k):
    labels, scores = k_best(field, k)
    for rows, there in zip(labels.flatten(0, -3), (scores > -torch.inf).flatten(0, -2), strict=True):
        assert len(set(map(tuple, rows[there].tolist()))) == int(there.sum())


def test_the_first_is_the_optimum_and_scores_have_gradients():
    field, leaves = as_leaves(ChainField(torch.randn(6, 5, 4), torch.randn(4, 4), start=torch.randn(4)))
    labels, scores = k_best(field, 3)
    best = eliminate_beliefs(field, "max")
    assert torch.equal(labels[:, 0], best.decode())
    close(scores[:, 0], best.log_partition)
    node = torch.autograd.grad(scores[:, 1].sum(), leaves)[0]
    close(node, torch.nn.functional.one_hot(labels[:, 1], 4).float())


def test_errors():
    field = ChainField(torch.zeros(1, 2, 2), torch.zeros(2, 2))
    with pytest.raises(OptionError, match="k_best: k is 0, but must be 1 or more"):
        k_best(field, 0)
    with pytest.raises(InputTypeError, match="k_best: k is a float, not an int"):
        k_best(field, 2.0)
    with pytest.raises(InputTypeError, match="k_best: got a PairwiseField, not a ChainField"):
        k_best(field.to_pairwise(), 2)
