import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from accord.datasets._sparse import dense_rows


@given(st.integers(1, 8), st.integers(1, 5), st.data())
def test_sparse_rows_become_dense_ones(rows, columns, data):
    values = data.draw(st.lists(st.integers(0, 3), min_size=rows * columns, max_size=rows * columns))
    x = torch.tensor(values, dtype=torch.float).reshape(rows, columns)
    sparse = scipy.sparse.csr_matrix(x.numpy())
    indptr, indices = torch.from_numpy(sparse.indptr).long(), torch.from_numpy(sparse.indices).long()
    assert torch.equal(dense_rows(indptr, indices, torch.from_numpy(sparse.data), (rows, columns)), x)
    assert torch.equal(dense_rows(indptr, indices, None, (rows, columns)), (x != 0).float())
