"""Device code for two states without -inf: a message is one number, log m(1) - log m(0).

So are node potentials and totals. This halves the reads and atomic additions at nodes, which are most of the cost of a
sweep. The two messages of an edge are adjacent in memory, and so are the four entries of its table: in single precision
a thread reads either as one vector.
"""
# mypy: ignore-errors
# ruff: noqa: D103

from accord._triton import jit, tl
from accord.inference.kernels.triton.device._rows import sum_runs, unpack


@jit
def load_table(tables, live):
    """The entries of each table, in vectors of 16 bytes: longer ones would be distributed among threads."""
    SIZE: tl.constexpr = 128 // tables.dtype.element_ty.primitive_bitwidth
    at = tables[:, None] + tl.arange(0, SIZE)[None, :]
    entries = ()
    for k in tl.static_range(0, 4, SIZE):
        entries = entries + unpack(tl.load(at + k, mask=live[:, None], other=1.0), SIZE)
    return entries


@jit
def either(a, b, form: tl.constexpr):
    """Sum (or maximum) of two numbers, in logs."""
    best = tl.maximum(a, b)
    if form.best:
        return best
    else:
        return best + tl.log(1.0 + tl.exp(-tl.abs(a - b)))


@jit
def send(cavity, t00, t01, t10, t11, form: tl.constexpr):
    """The log-ratio that an end sends, from its cavity; the first index of the table is its own state."""
    # Relative to the better state, so that no cavity is too large, and one term of each sum is an entry of the table.
    if form.linear:
        worse = tl.exp(-tl.abs(cavity))
        p0 = tl.where(cavity > 0, worse, 1.0)
        p1 = tl.where(cavity > 0, 1.0, worse)
        # Entries, and so their sums, lie within `SPAN`, e^-60 to 1 in float32: the quotient cannot overflow.
        return tl.log((t01 * p0 + t11 * p1) / (t00 * p0 + t10 * p1))
    else:
        p0 = tl.minimum(-cavity, 0.0)
        p1 = tl.minimum(cavity, 0.0)
        return either(t01 + p0, t11 + p1, form) - either(t00 + p0, t10 + p1, form)


@jit
def distance(before, after, form: tl.constexpr):
    """The largest change of an entry of the normalised log-message, relative to max(1, its largest magnitude).

    For ratio r the entries are r/2 - level and -r/2 - level, where level is log(2 cosh(r/2)), or |r|/2 in max-product.
    In one of them both parts change in the same direction, so the changes add up. The largest magnitude is
    |r|/2 plus the level.
    """
    level = 0.5 * (tl.abs(after) - tl.abs(before))
    size = tl.abs(after)
    if not form.best:
        # log(2 cosh(r/2)) = |r|/2 + log(1 + e^-|r|); one log for the difference of two, exactly 0 if r is unchanged.
        old = tl.exp(-tl.abs(before))
        new = tl.exp(-tl.abs(after))
        level += tl.log(1.0 + (new - old) / (1.0 + old))
        size += tl.log(1.0 + new)
    return (0.5 * tl.abs(after - before) + tl.abs(level)) / tl.maximum(size, 1.0)


@jit
def receive(memory, place, sent, before, side: tl.constexpr, rows, weight, live, running, form: tl.constexpr):
    """Add a message to the totals of its target; returns the message to store, and its relative change."""
    if form.damped:
        damping = tl.load(memory.options)
        sent = damping * before + (1.0 - damping) * sent
    after = tl.where(running, sent, before)
    if form.atomic:
        added = after * weight if form.weighted else after
        adding = live
        if form.runs and side == 1:  # messages to sources: the last lane of a run adds for all its edges
            adding = live & place.ends
            added = sum_runs(tl.where(live, added, 0.0), place.begins.to(tl.int32))
        tl.atomic_add(place.fresh + rows.to(tl.int64), added, mask=adding, sem="relaxed")
    return after, distance(before, after, form)


@jit
def exchange(memory, place, weight, live, running, form: tl.constexpr):
    """Replace both messages of each edge; returns their relative changes."""
    at = place.messages[:, None] + tl.arange(0, 2)[None, :]
    along, against = unpack(tl.load(at, mask=live[:, None], other=0.0), 2)
    near = tl.load(place.totals + place.source.to(tl.int64), mask=live, other=0.0) - against
    far = tl.load(place.totals + place.target.to(tl.int64), mask=live, other=0.0) - along
    t00, t01, t10, t11 = load_table(place.tables, live & running)
    forward = send(near, t00, t01, t10, t11, form)
    backward = send(far, t00, t10, t01, t11, form)
    forward, moved = receive(memory, place, forward, along, 0, place.target, weight, live, running, form)
    backward, moved_back = receive(memory, place, backward, against, 1, place.source, weight, live, running, form)
    tl.store(at, tl.join(forward, backward), mask=(live & running)[:, None])
    return moved, moved_back
