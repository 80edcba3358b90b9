"""Device code for one block of edges: both messages of each, from the totals of the last sweep to those of this one."""
# mypy: ignore-errors
# ruff: noqa: D103

from typing import Any, NamedTuple

from accord._triton import jit, tl
from accord.inference.kernels.triton.device import _ratios as ratios
from accord.inference.kernels.triton.device import _tiles as tiles
from accord.inference.kernels.triton.device._rows import (
    cavity,
    chunk_at,
    largest,
    load_rows,
    normalise,
    normalised_logs,
    pack,
    probabilities,
    scatter_add,
    store_rows,
    sum_runs,
    unpack,
)


class Place(NamedTuple):
    """Pointers and indices of a block of edges."""

    source: Any  # rows of totals
    target: Any
    begins: Any  # where a run of edges from the same source begins
    ends: Any  # and where it ends
    tables: Any  # of the block
    messages: Any
    backward: Any
    totals: Any  # of the last sweep
    counts: Any
    fresh: Any  # totals of this sweep
    fresh_counts: Any


@jit
def find_runs(at, source, live, more, form: tl.constexpr):
    """Whether the edges before and after a lane's edge have another source, or belong to another block."""
    WIDTH: tl.constexpr = form.width
    lane = tl.arange(0, WIDTH)
    before = tl.load(at - 1, mask=live & (lane > 0), other=-1)
    after = tl.load(at + 1, mask=more & (lane < WIDTH - 1), other=-1)
    return before != source, after != source


@jit
def find_place(memory, replica, position, live, before, now, edges, nodes, form: tl.constexpr):
    block = replica * ((edges + form.block - 1) // form.block) + position // form.block
    totals = memory.totals + before * nodes * form.padded
    fresh = memory.totals + now * nodes * form.padded
    backward = memory.messages
    counts = totals
    fresh_counts = fresh
    if form.tiled:
        backward = memory.backward + block * (form.stride * form.block)
    if form.barred:
        counts = memory.counts + before * nodes * form.padded
        fresh_counts = memory.counts + now * nodes * form.padded
    source = tl.load(memory.source + position, mask=live, other=-1, eviction_policy=form.stream)
    begins, ends = live, live
    if form.runs:
        begins, ends = find_runs(memory.source + position, source, live, position + 1 < edges, form)
    return Place(
        source=source,
        begins=begins,
        ends=ends,
        target=tl.load(memory.target + position, mask=live, other=0, eviction_policy=form.stream),
        tables=memory.tables + block * (form.states * form.stride * form.block),
        messages=memory.messages + block * (2 * form.message * form.block),
        backward=backward,
        totals=totals,
        counts=counts,
        fresh=fresh,
        fresh_counts=fresh_counts,
    )


@jit
def one_pass(place, lane, near, far, live, form: tl.constexpr):
    """Both directions in one pass over the tables: max-product on logs, or sum-product on linear tables."""
    STATES: tl.constexpr = form.states
    CHUNKS: tl.constexpr = len(form.starts)
    forward = ()
    backward = ()
    for c in tl.static_range(CHUNKS):
        others = pack(far, form.starts[c], form.sizes[c], form)
        ahead = tl.full(others.shape, -float("inf") if form.best else 0.0, others.dtype)
        back = ()
        for i in tl.static_range(STATES):
            at = chunk_at(place.tables, lane, i, form.starts[c], form.states, form.sizes[c], form)
            value = tl.load(at, mask=live[:, None], other=1.0, eviction_policy=form.stream)
            if form.best:
                ahead = tl.maximum(ahead, value + near[i][:, None])
                part = tl.max(value + others, 1)
                back = back + (part if c == 0 else tl.maximum(backward[i], part),)
            else:
                ahead += value * near[i][:, None]
                part = tl.sum(value * others, 1)
                back = back + (part if c == 0 else backward[i] + part,)
        forward = forward + unpack(ahead, form.sizes[c])
        backward = back
    return forward, backward


@jit
def send(place, lane, live, running, form: tl.constexpr):
    """Normalised messages from source to target, and from target to source."""
    near = cavity(place, place.source, load_rows(place.messages, lane, 1, 2, live, form), live, form)
    far = cavity(place, place.target, load_rows(place.messages, lane, 0, 2, live, form), live, form)
    if form.best:
        forward, backward = one_pass(place, lane, near, far, live & running, form)
        return normalise(forward, form), normalise(backward, form)
    else:
        near, far = probabilities(near, form), probabilities(far, form)
        forward, backward = one_pass(place, lane, near, far, live & running, form)
        return normalised_logs(forward, form), normalised_logs(backward, form)


@jit
def receive(memory, place, sent, lane, side: tl.constexpr, rows, weight, live, running, form: tl.constexpr):
    """Store a message and add it to the totals of its target; returns its relative change, and whether it is stuck."""
    STATES: tl.constexpr = form.states
    WIDTH: tl.constexpr = form.width
    damping = tl.load(memory.options)
    # Read again from cache, to save registers.
    before = load_rows(place.messages, lane, side, 2, live, form)
    stuck = largest(sent, form) == -float("inf")
    if form.damped:
        mixed = ()
        for k in tl.static_range(STATES):
            mixed = mixed + (damping * before[k] + (1.0 - damping) * sent[k],)
        sent = normalise(mixed, form)
    moved = tl.zeros((WIDTH,), sent[0].dtype)
    size = moved + 1.0  # what the change is relative to: the largest finite magnitude, but at least 1
    kept = ()
    added = ()
    barred = ()
    for k in tl.static_range(STATES):
        value = tl.where(running, sent[k], before[k])
        step = tl.abs(value - before[k])
        if form.barred:
            step = tl.where(value == before[k], 0.0, step)  # -inf - -inf
            barred = barred + ((value == -float("inf")).to(tl.int32),)
            kept = kept + (value,)
            value = tl.where(value == -float("inf"), 0.0, value)
        else:
            kept = kept + (value,)
        moved = tl.maximum(moved, step)
        size = tl.maximum(size, tl.abs(value))
        added = added + (value * weight if form.weighted else value,)
    store_rows(place.messages, lane, side, 2, kept, live & running, form)
    if form.atomic:
        adding = live
        if form.runs and side == 1:  # messages to sources: the last lane of a run adds for all its edges
            adding = live & place.ends
            joint = ()
            for k in tl.static_range(STATES):
                joint = joint + (sum_runs(tl.where(live, added[k], 0.0), place.begins.to(tl.int32)),)
            added = joint
        scatter_add(place.fresh, rows, adding, added, form.vector, form)
        if form.barred:
            scatter_add(place.fresh_counts, rows, live, barred, form.count_vector, form)
    return moved / size, stuck


@jit
def sweep_edges(memory, replica, position, live, running, before, now, edges, nodes, form: tl.constexpr):
    """Update both messages of `width` edges; returns their relative changes, and which have no state left."""
    place = find_place(memory, replica, position, live, before, now, edges, nodes, form)
    lane = position % form.width
    weight = 1.0
    if form.weighted:
        weight = tl.load(memory.weight + replica * edges + position, mask=live, other=1.0)
    if form.ratios:
        moved, moved_back = ratios.exchange(memory, place, weight, live, running, form)
        stuck, stuck_back = ~live, ~live
    elif form.tiled:
        forward, backward = tiles.send(place, live & running, form)
        moved, stuck = tiles.receive(memory, place, forward, 0, place.target, weight, live, running, form)
        moved_back, stuck_back = tiles.receive(memory, place, backward, 1, place.source, weight, live, running, form)
    else:
        forward, backward = send(place, lane, live, running, form)
        moved, stuck = receive(memory, place, forward, lane, 0, place.target, weight, live, running, form)
        moved_back, stuck_back = receive(memory, place, backward, lane, 1, place.source, weight, live, running, form)
    return tl.maximum(moved, moved_back), stuck, stuck_back
