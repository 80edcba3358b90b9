"""Sparse features in files: CSR arrays to dense ones."""

from collections.abc import Mapping

import numpy as np
import scipy.sparse

from accord.datasets._sources import check_memory
from accord.errors import GraphError

SPARSE_ARRAYS = ("x_indptr", "x_indices", "x_shape")
SPARSE_VALUES = "x_data"
ENTRY_BYTES = 16  # of an entry as float64 and float32, with the masks that check it


def dense_rows(arrays: Mapping[str, np.ndarray], where: str) -> np.ndarray:
    """The matrix that `x_indptr`, `x_indices`, `x_shape` and perhaps `x_data` describe, as a dense array.

    Without `x_data` each entry is 1. Entries at the same place are added, as SciPy does.
    """
    indptr, indices, shape = (arrays[name].ravel() for name in SPARSE_ARRAYS)
    data = arrays.get(SPARSE_VALUES)
    fits = (
        all(array.dtype.kind in "iu" for array in (indptr, indices, shape))
        and len(shape) == 2
        and bool((shape >= 0).all())
        and len(indptr) == int(shape[0]) + 1
        and indptr[0] == 0
        and indptr[-1] == len(indices)
        and bool((indptr[1:] >= indptr[:-1]).all())
        and (not len(indices) or (int(indices.min()) >= 0 and int(indices.max()) < shape[1]))
        and (data is None or (data.shape == indices.shape and data.dtype.kind in "fiub"))
    )
    if not fits:
        raise GraphError(
            f"{where}: {', '.join(SPARSE_ARRAYS)} and {SPARSE_VALUES} do not make a sparse matrix. Take them from "
            "SciPy's csr_matrix."
        )
    rows, columns = (int(size) for size in shape)
    check_memory(ENTRY_BYTES * rows * columns, f"{where}: x, of shape [{rows}, {columns}],")
    if data is None:
        values = np.ones(len(indices), np.float32)
    else:
        # Small integers would wrap around when entries are added. Booleans stay: SciPy joins them by "or".
        values = data if data.dtype.kind == "b" else data.astype(np.float32 if data.itemsize < 4 else np.float64)
    dense: np.ndarray = scipy.sparse.csr_array(
        (values, indices.astype(np.int64), indptr.astype(np.int64)), shape=(rows, columns)
    ).toarray()
    return dense
