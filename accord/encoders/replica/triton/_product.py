"""Sparse times dense on the GPU: one program sums each row, in the order of its entries.

cuSPARSE sums in the order in which threads finish; this kernel is deterministic, and sums half precision in float32.
Programs of the same block of columns run side by side, so that the rows they gather stay in the cache.
"""

import torch
from torch import Tensor

from accord._triton import jit, power_of_two, tl, triton

MAX_BLOCK_COLUMNS = 512  # columns of `h` per program
BLOCK_ENTRIES = 4  # rows of `h` that a program gathers at a time
WARPS = 4


def sparse_product(matrix: Tensor, h: Tensor) -> Tensor:
    """A matrix of compressed rows times `h` [columns, width], in the precision of `h`."""
    rows, width = matrix.shape[0], h.shape[1]
    h = h.contiguous()
    out = torch.empty(rows, width, dtype=h.dtype, device=h.device)
    block = min(power_of_two(width), MAX_BLOCK_COLUMNS)
    grid = (rows * triton.cdiv(width, block),)
    start, column, values = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    sum_rows[grid](start, column, values, h, out, rows, width, BLOCK_ENTRIES, block, num_warps=WARPS)
    return out


@jit
def sum_rows(  # type: ignore[no-untyped-def]
    start, column, values, h, out, rows, width, ENTRIES: tl.constexpr, WIDTH: tl.constexpr
):
    """out[row] = sum over the row's entries of value x h[column]."""
    row = (tl.program_id(0) % rows).to(tl.int64)
    place = tl.program_id(0) // rows * WIDTH + tl.arange(0, WIDTH)
    there = place < width
    sums = tl.zeros([ENTRIES, WIDTH], tl.float32)
    last = tl.load(start + row + 1)
    for first in range(tl.load(start + row), last, ENTRIES):
        entry = first + tl.arange(0, ENTRIES)
        mask = entry < last
        at = tl.load(column + entry, mask, other=0).to(tl.int64)
        value = tl.load(values + entry, mask, other=0.0).to(tl.float32)
        gathered = tl.load(h + at[:, None] * width + place[None, :], mask[:, None] & there[None, :], other=0.0)
        sums += value[:, None] * gathered.to(tl.float32)
    tl.store(out + row * width + place, tl.sum(sums, 0).to(out.dtype.element_ty), there)
