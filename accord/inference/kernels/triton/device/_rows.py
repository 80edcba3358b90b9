"""Rows of states on the device: a lane is an edge, and a row (a message, a cavity) is a tuple of columns [width].

So sums over states stay within a lane, and nothing is padded. In memory, tables and messages are ordered by block of
`width` edges, then by chunk of up to 16 bytes of states, then by lane: a warp reads one contiguous range, a lane one
vector. Rows of totals are scattered, one for each node, and padded to whole vectors. The cache should hold them; all
other data is used once in a sweep, and is evicted first.
"""
# mypy: ignore-errors
# ruff: noqa: D103

from accord._triton import jit, tl

# ---- between columns and vectors


@jit
def pack(row, START: tl.constexpr, SIZE: tl.constexpr, form: tl.constexpr):
    """Columns from START on as one tile [width, SIZE]; zeros beyond the last state."""
    if SIZE == 4:
        even = tl.join(column(row, START, form), column(row, START + 2, form))
        odd = tl.join(column(row, START + 1, form), column(row, START + 3, form))
        return tl.reshape(tl.join(even, odd), (even.shape[0], 4))
    elif SIZE == 2:
        return tl.join(column(row, START, form), column(row, START + 1, form))
    else:
        return tl.expand_dims(row[START], 1)


@jit
def column(row, k: tl.constexpr, form: tl.constexpr):
    if k < form.states:
        return row[k]
    else:
        return tl.zeros_like(row[0])


@jit
def unpack(tile, SIZE: tl.constexpr):
    """A tile [width, SIZE] as columns."""
    if SIZE == 4:
        even, odd = tl.split(tl.reshape(tile, (tile.shape[0], 2, 2)))
        first, third = tl.split(even)
        second, fourth = tl.split(odd)
        return (first, second, third, fourth)
    elif SIZE == 2:
        first, second = tl.split(tile)
        return (first, second)
    else:
        return (tl.reshape(tile, (tile.shape[0],)),)


@jit
def chunk_at(base, lane, row, start, ROWS: tl.constexpr, SIZE: tl.constexpr, form: tl.constexpr):
    """Address of a chunk of one of ROWS rows within a block."""
    vector = base[:, None] + lane[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    return vector + (start * ROWS + row * SIZE) * form.block


@jit
def message_offset(position, side, state, form: tl.constexpr):
    """Offset of a state of a message."""
    if form.block == 1:
        return (position.to(tl.int64) * 2 + side) * form.message + state
    else:
        size = tl.full(state.shape, 1, tl.int32)
        if form.vector >= 2:
            size = tl.where(state < form.states // 2 * 2, 2, size)
        if form.vector >= 4:
            size = tl.where(state < form.states // 4 * 4, 4, size)
        start = state // size * size
        block = (position // form.block).to(tl.int64) * (2 * form.states * form.block)
        return block + (start * 2 + side * size) * form.block + position % form.block * size + state - start


# ---- rows of nodes


@jit
def gather(base, rows, live, SIZE: tl.constexpr, form: tl.constexpr):
    """Rows of an array [nodes, padded]."""
    STATES: tl.constexpr = form.states
    at = base + rows.to(tl.int64)[:, None] * form.padded + tl.arange(0, SIZE)[None, :]
    row = ()
    for k in tl.static_range(0, STATES, SIZE):
        row = row + unpack(tl.load(at + k, mask=live[:, None], other=0, eviction_policy=form.keep), SIZE)
    return row


@jit
def scatter_add(base, rows, live, row, SIZE: tl.constexpr, form: tl.constexpr):
    """Add to rows of an array [nodes, padded], atomically."""
    STATES: tl.constexpr = form.states
    at = base + rows.to(tl.int64)[:, None] * form.padded + tl.arange(0, SIZE)[None, :]
    for k in tl.static_range(0, STATES, SIZE):
        tl.atomic_add(at + k, pack(row, k, SIZE, form), mask=live[:, None], sem="relaxed")


@jit
def join_runs(value, begins, later, later_begins):
    return later + tl.where(later_begins > 0, 0.0, value), begins | later_begins


@jit
def sum_runs(column, begins):
    """For each lane, the sum from the beginning of its run."""
    total, _ = tl.associative_scan((column, begins), 0, join_runs)
    return total


# ---- messages


@jit
def load_rows(base, lane, row, ROWS: tl.constexpr, live, form: tl.constexpr):
    CHUNKS: tl.constexpr = len(form.starts)
    columns = ()
    for c in tl.static_range(CHUNKS):
        at = chunk_at(base, lane, row, form.starts[c], ROWS, form.sizes[c], form)
        columns = columns + unpack(
            tl.load(at, mask=live[:, None], other=0.0, eviction_policy=form.stream), form.sizes[c]
        )
    return columns


@jit
def store_rows(base, lane, row, ROWS: tl.constexpr, columns, live, form: tl.constexpr):
    CHUNKS: tl.constexpr = len(form.starts)
    for c in tl.static_range(CHUNKS):
        at = chunk_at(base, lane, row, form.starts[c], ROWS, form.sizes[c], form)
        tl.store(
            at, pack(columns, form.starts[c], form.sizes[c], form), mask=live[:, None], eviction_policy=form.stream
        )


@jit
def without(total, count, reverse, form: tl.constexpr):
    """A sum of messages without one of them. Infinities are counted separately, since -inf - -inf is NaN."""
    if form.barred:
        no = reverse == -float("inf")
        finite = total - tl.where(no, 0.0, reverse)
        return tl.where(count - no.to(tl.int32) > 0, -float("inf"), finite)
    else:
        return total - reverse


@jit
def cavity(place, rows, reverse, live, form: tl.constexpr):
    """The belief of a node without the message from the other end of the edge."""
    STATES: tl.constexpr = form.states
    total = gather(place.totals, rows, live, form.vector, form)
    count = total
    if form.barred:
        count = gather(place.counts, rows, live, form.count_vector, form)
    row = ()
    for k in tl.static_range(STATES):
        row = row + (without(total[k], count[k], reverse[k], form),)
    return row


@jit
def largest(row, form: tl.constexpr):
    STATES: tl.constexpr = form.states
    best = row[0]
    for k in tl.static_range(1, STATES):
        best = tl.maximum(best, row[k])
    return best


@jit
def level_of(row, form: tl.constexpr):
    """The largest value, or 0 if all are -inf."""
    best = largest(row, form)
    if form.barred:
        best = tl.where(best == -float("inf"), 0.0, best)
    return best


@jit
def log_sum(row, form: tl.constexpr):
    STATES: tl.constexpr = form.states
    level = level_of(row, form)
    total = tl.exp(row[0] - level)
    for k in tl.static_range(1, STATES):
        total += tl.exp(row[k] - level)
    return level + tl.log(total)


@jit
def normalise(row, form: tl.constexpr):
    """Log-messages that sum to one, or whose best state is 0; rows that are all -inf are unchanged."""
    STATES: tl.constexpr = form.states
    if form.best:
        level = level_of(row, form)
    else:
        level = log_sum(row, form)
        if form.barred:
            level = tl.where(level == -float("inf"), 0.0, level)
    normal = ()
    for k in tl.static_range(STATES):
        normal = normal + (row[k] - level,)
    return normal


@jit
def probabilities(row, form: tl.constexpr):
    """Values relative to the largest."""
    STATES: tl.constexpr = form.states
    level = level_of(row, form)
    linear = ()
    for k in tl.static_range(STATES):
        linear = linear + (tl.exp(row[k] - level),)
    return linear


@jit
def normalised_logs(row, form: tl.constexpr):
    STATES: tl.constexpr = form.states
    total = row[0]
    for k in tl.static_range(1, STATES):
        total += row[k]
    scale = 1.0 / total
    if form.barred:
        scale = tl.where(total > 0, scale, 0.0)  # no state is left
    logs = ()
    for k in tl.static_range(STATES):
        logs = logs + (tl.log(row[k] * scale),)
    return logs
