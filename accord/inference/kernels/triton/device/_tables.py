"""Device code that writes tables in the layout of the sweeps; each number is read once and written once."""
# mypy: ignore-errors
# ruff: noqa: D103

from accord._triton import jit, tl
from accord.inference.kernels.triton.device._rows import chunk_at


@jit
def load_entries(rows, state, top, share, live, form: tl.constexpr):
    """Part of a row of each table: potentials, or exponentials relative to the largest; -inf or 0 in padding."""
    value = tl.load(rows[:, None] + state, mask=live[:, None] & (state < form.states), other=-float("inf"))
    if form.weighted:
        value = value / share[:, None]
    if form.linear:
        value = tl.exp(value - top[:, None])
    return value


@jit(do_not_specialize=["apart", "edges", "programs"])
def write_tables(
    given, apart, highest, weight, order, tables, edges, programs, WIDTH: tl.constexpr, form: tl.constexpr
):
    """Write WIDTH edges of a replica, from [edges, states, states] to their new order and the layout of a form.

    Replicas of the input are `apart` numbers from each other; 0 if they share their tables.
    """
    STATES: tl.constexpr = form.states
    COLUMNS: tl.constexpr = form.columns
    CHUNKS: tl.constexpr = len(form.starts)
    replica = (tl.program_id(0) // programs).to(tl.int64)
    position = tl.program_id(0) % programs * WIDTH + tl.arange(0, WIDTH)
    live = position < edges
    edge = position.to(tl.int64)
    if order is not None:
        edge = tl.load(order + position, mask=live, other=0)
    share, top = live, live
    if form.weighted:
        share = tl.load(weight + replica * edges + edge, mask=live, other=1.0)
    if form.linear:
        top = tl.load(highest + replica * edges + edge, mask=live, other=0.0)
        if form.weighted:
            top = top / share
    block = replica * ((edges + form.block - 1) // form.block) + position // form.block
    tables += block * (form.states * form.stride * form.block)
    row = 0
    while row < STATES:
        rows = given + replica * apart + (edge * STATES + row) * STATES
        if form.block == 1:
            state = tl.arange(0, COLUMNS)[None, :]
            value = load_entries(rows, state, top, share, live, form)
            tl.store(tables[:, None] + row * form.stride + state, value, mask=live[:, None] & (state < form.stride))
        else:
            for c in tl.static_range(CHUNKS):
                state = form.starts[c] + tl.arange(0, form.sizes[c])[None, :]
                value = load_entries(rows, state, top, share, live, form)
                at = chunk_at(tables, position % form.block, row, form.starts[c], STATES, form.sizes[c], form)
                tl.store(at, value, mask=live[:, None])
        row += 1
