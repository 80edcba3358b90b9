"""Device code for many states, or for tables that need log space: tiles of [edges, states], shared by the threads.

Messages and tables are stored edge by edge and row by row, rows padded to whole vectors. Some rows of the tables of the
current edges make a tile [edges, rows, states]. Messages to targets are sums over its rows, messages to sources are
sums over its states. The code is as long for 64 states as for 17, and compiles in a second or two; with columns in
registers it would take minutes. A program is one warp, so no warp waits for another.
"""
# mypy: ignore-errors
# ruff: noqa: D103

from accord._triton import jit, tl
from accord.inference.kernels.triton.device._rows import without


@jit
def cavity(place, nodes, side, state, live, form: tl.constexpr):
    """Beliefs of nodes in some states without the message from the other end of the edge; -inf in padding."""
    there = live[:, None] & (state < form.stride)
    reverse = tl.load(place.messages[:, None] + side * form.stride + state, mask=there, other=0.0)
    offset = nodes.to(tl.int64)[:, None] * form.padded + state
    total = tl.load(place.totals + offset, mask=there, other=0.0, eviction_policy=form.keep)
    count = 0
    if form.barred:
        count = tl.load(place.counts + offset, mask=there, other=0)
    return tl.where(state < form.states, without(total, count, reverse, form), -float("inf"))


@jit
def finite(level):
    """The level to subtract: 0 if no state is left."""
    return tl.where(level == -float("inf"), 0.0, level)


@jit
def relative(logs):
    """Values relative to the largest."""
    return tl.exp(logs - finite(tl.max(logs, 1))[:, None])


@jit
def normalise(logs, form: tl.constexpr):
    """Log-messages that sum to one, or whose best state is 0; rows that are all -inf are unchanged."""
    level = finite(tl.max(logs, 1))
    if not form.best:
        level = finite(level + tl.log(tl.sum(tl.exp(logs - level[:, None]), 1)))
    return logs - level[:, None]


@jit
def normalised_logs(sums):
    total = tl.sum(sums, 1)
    scale = tl.where(total > 0, 1.0 / total, 0.0)  # possibly no state is left
    return tl.log(sums * scale[:, None])


@jit
def add_logs(top, total, logs):
    """Update sums of exponentials, relative to the largest so far."""
    new_top = tl.maximum(top, logs)
    level = finite(new_top)
    return new_top, total * tl.exp(top - level) + tl.exp(logs - level)


@jit
def load_rows(place, first, live, form: tl.constexpr):
    """Some rows of all tables, [edges, rows, states]; padding contributes nothing to sums."""
    ROWS: tl.constexpr = form.rows
    PADDED: tl.constexpr = form.padded
    row = (first + tl.arange(0, ROWS))[None, :, None]
    state = tl.arange(0, PADDED)[None, None, :]
    there = live[:, None, None] & (row < form.states) & (state < form.stride)
    at = place.tables[:, None, None] + row * form.stride + state
    return tl.load(at, mask=there, other=0.0 if form.linear else -float("inf"), eviction_policy=form.stream)


@jit
def send(place, live, form: tl.constexpr):
    """Normalised messages from sources to targets, and from targets to sources."""
    WIDTH: tl.constexpr = form.width
    ROWS: tl.constexpr = form.rows
    PADDED: tl.constexpr = form.padded
    NOTHING: tl.constexpr = 0.0 if form.linear else -float("inf")
    state = tl.arange(0, PADDED)[None, :]
    far = cavity(place, place.target, 0, state, live, form)
    level = tl.zeros((WIDTH,), far.dtype)
    if form.linear:
        far = relative(far)
        level = finite(tl.max(cavity(place, place.source, 1, state, live, form), 1))
    far = far[:, None, :]
    # Kept separately for each row of a tile and reduced at the end: within the loop no thread waits for another.
    forward = tl.full((WIDTH, ROWS, PADDED), NOTHING, far.dtype)
    sums = tl.zeros((WIDTH, ROWS, PADDED), far.dtype)
    first = 0
    value = load_rows(place, first, live, form)
    while first < form.states:
        coming = load_rows(place, first + ROWS, live, form)  # loaded while this tile is processed
        row = first + tl.arange(0, ROWS)[None, :]
        near = cavity(place, place.source, 1, row, live, form)[:, :, None]
        if form.linear:
            forward += value * tl.exp(near - level[:, None, None])
            backward = tl.sum(value * far, 2)
        elif form.best:
            forward = tl.maximum(forward, value + near)
            backward = tl.max(value + far, 2)
        else:
            forward, sums = add_logs(forward, sums, value + near)
            top = finite(tl.max(value + far, 2))
            backward = top + tl.log(tl.sum(tl.exp(value + far - top[:, :, None]), 2))
        tl.store(place.backward[:, None] + row, backward, mask=live[:, None] & (row < form.states))
        value = coming
        first += ROWS
    tl.debug_barrier()  # from here on, other threads read `backward` and replace the messages
    backward = tl.load(place.backward[:, None] + state, mask=live[:, None] & (state < form.stride), other=NOTHING)
    backward = tl.where(state < form.states, backward, NOTHING)
    if form.linear:
        return normalised_logs(tl.sum(forward, 1)), normalised_logs(backward)
    elif form.best:
        return normalise(tl.max(forward, 1), form), normalise(backward, form)
    else:
        top = finite(tl.max(forward, 1))
        total = tl.sum(sums * tl.exp(forward - top[:, None, :]), 1)
        return normalise(top + tl.log(total), form), normalise(backward, form)


@jit
def receive(memory, place, sent, side, nodes, weight, live, running, form: tl.constexpr):
    """Store messages and add them to the totals of their targets; returns relative changes, and which are stuck."""
    PADDED: tl.constexpr = form.padded
    state = tl.arange(0, PADDED)[None, :]
    there = live[:, None] & (state < form.stride)
    damping = tl.load(memory.options)
    at = place.messages[:, None] + side * form.stride + state
    before = tl.load(at, mask=there, other=0.0)
    stuck = tl.max(sent, 1) == -float("inf")
    if form.damped:
        sent = normalise(damping * before + (1.0 - damping) * sent, form)
    value = tl.where(running[:, None], sent, before)
    value = tl.where(state < form.states, value, 0.0)
    # If both are -inf, there is no change.
    step = tl.where((state < form.states) & (value != before), tl.abs(value - before), 0.0)
    # What the change is relative to: the largest finite magnitude, but at least 1.
    size = tl.maximum(tl.max(tl.where(value == -float("inf"), 0.0, tl.abs(value)), 1), 1.0)
    tl.store(at, value, mask=there & running[:, None])
    if form.atomic:
        offset = nodes.to(tl.int64)[:, None] * form.padded + state
        if form.barred:
            no = value == -float("inf")
            tl.atomic_add(place.fresh_counts + offset, no.to(tl.int32), mask=there, sem="relaxed")
            value = tl.where(no, 0.0, value)
        if form.weighted:
            value = value * weight[:, None]
        tl.atomic_add(place.fresh + offset, value, mask=there, sem="relaxed")
    return tl.max(step, 1) / size, stuck
