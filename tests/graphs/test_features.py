import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from accord.datasets._features import dense_rows, find_treatment, raw, row_normalise, standardise
from accord.errors import OptionError


@st.composite
def counts(draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Word counts, many of them zero, and at least one training row."""
    rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    values = draw(st.lists(st.integers(0, 3), min_size=rows * columns, max_size=rows * columns))
    training = draw(st.lists(st.booleans(), min_size=rows, max_size=rows))
    training[draw(st.integers(0, rows - 1))] = True
    return torch.tensor(values, dtype=torch.float).reshape(rows, columns), torch.tensor(training)


@given(counts())
def test_raw_changes_nothing(drawn):
    assert torch.equal(raw(*drawn), drawn[0])


@given(counts())
def test_normalised_rows_sum_to_one_or_stay_zero(drawn):
    x, training = drawn
    total = row_normalise(x, training).sum(1)
    torch.testing.assert_close(total, (x.sum(1) > 0).float())


@given(counts())
def test_standardised_training_columns_have_mean_zero_and_deviation_one_or_zero(drawn):
    x, training = drawn
    treated = standardise(x, training)
    assert treated.dtype == x.dtype and bool(treated.isfinite().all())
    seen = treated[training].double()
    torch.testing.assert_close(seen.mean(0), torch.zeros(x.shape[1]).double(), atol=1e-5, rtol=0)
    changes = (x[training].amin(0) != x[training].amax(0)).double()
    torch.testing.assert_close(seen.std(0, correction=0), changes, atol=1e-5, rtol=0)


@given(counts())
def test_other_rows_do_not_influence_the_scale(drawn):
    x, training = drawn
    other = torch.where(training[:, None], x, x + 7)
    assert torch.equal(standardise(x, training)[training], standardise(other, training)[training])


def test_a_column_that_is_constant_in_training_is_only_shifted():
    x = torch.tensor([[0.1], [0.1], [0.1], [3.1]])
    treated = standardise(x, torch.tensor([True, True, True, False]))
    torch.testing.assert_close(treated, torch.tensor([[0.0], [0.0], [0.0], [3.0]]))


@given(counts())
def test_treatments_leave_their_input_alone(drawn):
    x, training = drawn
    before = x.clone()
    for name in ("raw", "row-normalised", "standardised"):
        find_treatment(name)(x, training)
    assert torch.equal(x, before)


def test_unknown_treatments_are_refused_with_the_choices():
    with pytest.raises(OptionError, match="'scaled'.*raw, row-normalised, standardised"):
        find_treatment("scaled")


@given(counts())
def test_sparse_rows_become_dense_ones(drawn):
    x, _ = drawn
    sparse = scipy.sparse.csr_matrix(x.numpy())
    indptr, indices = torch.from_numpy(sparse.indptr).long(), torch.from_numpy(sparse.indices).long()
    shape = (x.shape[0], x.shape[1])
    assert torch.equal(dense_rows(indptr, indices, torch.from_numpy(sparse.data), shape), x)
    assert torch.equal(dense_rows(indptr, indices, None, shape), (x != 0).float())
