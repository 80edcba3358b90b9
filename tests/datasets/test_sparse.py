import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from accord.datasets._sparse import dense_rows
from accord.errors import GraphError, TooLargeError


def parts(indptr, indices, shape, data=None):
    named = {"x_indptr": indptr, "x_indices": indices, "x_shape": shape} | ({} if data is None else {"x_data": data})
    return {name: np.asarray(value) for name, value in named.items()}


@given(st.integers(1, 8), st.integers(1, 5), st.data())
def test_sparse_rows_become_dense_ones(rows, columns, data):
    values = data.draw(st.lists(st.integers(0, 3), min_size=rows * columns, max_size=rows * columns))
    x = np.array(values, dtype=np.float32).reshape(rows, columns)
    sparse = scipy.sparse.csr_matrix(x)
    stored = parts(sparse.indptr, sparse.indices, x.shape)
    assert np.array_equal(dense_rows(stored | {"x_data": sparse.data}, "g"), x)
    assert np.array_equal(dense_rows(stored, "g"), x != 0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-9, 9)), max_size=12), st.sampled_from("fdilb?"))
def test_entries_at_one_place_are_added_as_scipy_does(entries, kind):
    indices = np.array([column for column, _ in entries], dtype=np.int32)
    data = np.array([value for _, value in entries], dtype=kind)
    indptr = np.array([0, len(entries) // 2, len(entries)])
    expected = scipy.sparse.csr_matrix((data, indices, indptr), shape=(2, 3)).toarray()
    assert np.array_equal(dense_rows(parts(indptr, indices, (2, 3), data), "g"), expected)


def test_sums_of_small_integers_do_not_wrap_around():
    assert dense_rows(parts([0, 2], [0, 0], (1, 1), np.array([200, 200], np.uint8)), "g").tolist() == [[400]]


@pytest.mark.parametrize(
    "broken",
    [
        parts([0, 1], [0], (1, 1, 1)),
        parts([0, 1], [1], (1, 1)),
        parts([0, 2], [0], (1, 1)),
        parts([0, 1, 0, 1], [0], (3, 1)),
        parts(np.array([0, 2**64 - 1, 1], np.uint64), [0], (2, 1)),
        parts([0, 1], [0], (1, 1), ["a"]),
        parts([0.0, 1.0], [0], (1, 1)),
    ],
)
def test_arrays_that_are_no_sparse_matrix_are_refused(broken):
    with pytest.raises(GraphError, match="g: .*do not make a sparse matrix"):
        dense_rows(broken, "g")


def test_a_shape_beyond_memory_is_refused_before_it_is_allocated():
    with pytest.raises(TooLargeError, match=r"g: x, of shape \[1, 1000000000000000\], needs 16,000,000.0 GB"):
        dense_rows(parts([0, 1], [0], (1, 10**15)), "g")
