"""Device code for many states, or for tables that need log space: a loop over chunks of the target's states.

Still a lane is an edge, but only the cavity of the source and the sums for it stay in registers. What the target
believes is read chunk by chunk, what it is told is put down chunk by chunk.
"""
# mypy: ignore-errors
# ruff: noqa: D103

from accord.inference.kernels._triton_language import jit, tl
from accord.inference.kernels._triton_rows import (
    cavity,
    chunk_at,
    level_of,
    load_rows,
    normalise,
    normalised_logs,
    probabilities,
    without,
)


@jit
def far_chunk(place, lane, level, start, SIZE: tl.constexpr, live, form: tl.constexpr):
    """What the target believes of some states, as `send` needs it."""
    heard = tl.load(chunk_at(place.messages, lane, 0, start, 2, SIZE, form), mask=live[:, None], other=0.0)
    offset = place.target.to(tl.int64)[:, None] * form.padded + start + tl.arange(0, SIZE)[None, :]
    total = tl.load(place.totals + offset, mask=live[:, None], other=0.0)
    count = 0
    if form.barred:
        count = tl.load(place.counts + offset, mask=live[:, None], other=0)
    value = without(total, count, heard, form)
    if form.linear:
        return tl.exp(value - level[:, None])
    else:
        return value


@jit
def linear_step(place, lane, near, sums, far, start, SIZE: tl.constexpr, live, form: tl.constexpr):
    """Max-product on logs or sum-product on linear tables: one chunk told, and one chunk heard."""
    STATES: tl.constexpr = form.states
    ahead = tl.full(far.shape, -float("inf") if form.best else 0.0, far.dtype)
    backward = ()
    for i in tl.static_range(STATES):
        at = chunk_at(place.tables, lane, i, start, form.states, SIZE, form)
        value = tl.load(at, mask=live[:, None], other=1.0)
        if form.best:
            ahead = tl.maximum(ahead, value + near[i][:, None])
            backward = backward + (tl.maximum(sums[i], tl.max(value + far, 1)),)
        else:
            ahead += value * near[i][:, None]
            backward = backward + (sums[i] + tl.sum(value * far, 1),)
    return ahead, backward


@jit
def log_step(place, lane, near, tops, sums, far, start, SIZE: tl.constexpr, live, form: tl.constexpr):
    """The same sum-product without leaving log space: sums for the source are relative to the largest so far."""
    STATES: tl.constexpr = form.states
    best = tl.full(far.shape, -float("inf"), far.dtype)
    for i in tl.static_range(STATES):
        at = chunk_at(place.tables, lane, i, start, form.states, SIZE, form)
        best = tl.maximum(best, tl.load(at, mask=live[:, None], other=0.0) + near[i][:, None])
    best = tl.where(best == -float("inf"), 0.0, best)
    total = tl.zeros_like(far)
    new_tops = ()
    new_sums = ()
    for i in tl.static_range(STATES):
        at = chunk_at(place.tables, lane, i, start, form.states, SIZE, form)
        value = tl.load(at, mask=live[:, None], other=0.0)
        total += tl.exp(value + near[i][:, None] - best)
        top = tl.maximum(tops[i], tl.max(value + far, 1))
        level = tl.where(top == -float("inf"), 0.0, top)
        part = tl.sum(tl.exp(value + far - level[:, None]), 1)
        new_tops = new_tops + (top,)
        new_sums = new_sums + (sums[i] * tl.exp(tops[i] - level) + part,)
    return best + tl.log(total), new_tops, new_sums


@jit
def step(place, lane, near, tops, sums, level, start, SIZE: tl.constexpr, live, form: tl.constexpr):
    """One chunk of the target's states."""
    far = far_chunk(place, lane, level, start, SIZE, live, form)
    if form.best or form.linear:
        ahead, sums = linear_step(place, lane, near, sums, far, start, SIZE, live, form)
    else:
        ahead, tops, sums = log_step(place, lane, near, tops, sums, far, start, SIZE, live, form)
    tl.store(chunk_at(place.said, lane, 0, start, 1, SIZE, form), ahead, mask=live[:, None])
    return tops, sums


@jit
def send(place, lane, live, form: tl.constexpr):
    """What the source tells the target, and the target the source: normalised."""
    STATES: tl.constexpr = form.states
    CHUNKS: tl.constexpr = len(form.starts)
    VECTOR: tl.constexpr = form.vector
    near = cavity(place, place.source, load_rows(place.messages, lane, 1, 2, live, form), live, form)
    far = cavity(place, place.target, load_rows(place.messages, lane, 0, 2, live, form), live, form)
    level = level_of(far, form)
    if form.linear:
        near = probabilities(near, form)
    tops = ()
    sums = ()
    for _ in tl.static_range(STATES):
        tops = tops + (tl.full(level.shape, -float("inf"), level.dtype),)
        sums = sums + (tl.full(level.shape, -float("inf") if form.best else 0.0, level.dtype),)
    if STATES >= VECTOR:
        start = 0
        while start < STATES // VECTOR * VECTOR:
            tops, sums = step(place, lane, near, tops, sums, level, start, VECTOR, live, form)
            start += VECTOR
    for c in tl.static_range(STATES // VECTOR, CHUNKS):
        tops, sums = step(place, lane, near, tops, sums, level, form.starts[c], form.sizes[c], live, form)
    tl.debug_barrier()  # a lane may be read by another thread than wrote it
    forward = load_rows(place.said, lane, 0, 1, live, form)
    if form.best:
        return normalise(forward, form), normalise(sums, form)
    elif form.linear:
        return normalised_logs(forward, form), normalised_logs(sums, form)
    else:
        backward = ()
        for k in tl.static_range(STATES):
            backward = backward + (tl.where(sums[k] > 0, tops[k] + tl.log(sums[k]), -float("inf")),)
        return normalise(forward, form), normalise(backward, form)
