"""The kernels that are launched: one sweep over a large graph, or all sweeps over a group of small ones.

Edges and totals take turns. `sweep` reads the totals of the last sweep, replaces both messages of every edge and
adds them to new totals; `turn` counts sweeps, freezes what has settled, and sets the stale totals back to the node
potentials for the sweep after the next. Where the same bits are wanted every run, nothing is added by `sweep`;
`turn` collects the messages of each node in their order instead.

Loops are `while`, since the interpreter cannot count `range` in values of the device.
"""
# mypy: ignore-errors
# ruff: noqa: D103

from accord.inference.kernels._triton_edges import sweep_edges
from accord.inference.kernels._triton_language import jit, tl
from accord.inference.kernels._triton_rows import message_offset

UNSPECIALISED = ["edges", "nodes", "graphs", "programs", "replicas", "parity", "max_sweeps"]  # one kernel for any size


@jit
def sweep_block(memory, replica, first, last, old, new, edges, nodes, graphs, form: tl.constexpr):
    """`width` edges from `first` on, those before `last`."""
    WIDTH: tl.constexpr = form.width
    position = first + tl.arange(0, WIDTH)
    live = position < last
    running = live
    graph = tl.zeros((WIDTH,), tl.int32)
    if form.many:
        graph = tl.load(memory.graph + position, mask=live, other=0)
        running = tl.load(memory.running + replica * graphs + graph, mask=live, other=0) > 0
    moved, stuck, stuck_back = sweep_edges(memory, replica, position, live, running, old, new, edges, nodes, form)
    if form.barred:
        arc = replica * 2 * edges + position
        tl.atomic_min(memory.stuck + 0 * position, arc, mask=stuck & live & running, sem="relaxed")
        tl.atomic_min(memory.stuck + 0 * position, arc + edges, mask=stuck_back & live & running, sem="relaxed")
    # Values that are not negative are ordered like their bits, and whole numbers have a maximum that is atomic. What is
    # known already need not be said again: a look costs less than thousands of programs waiting for one word.
    bits = memory.moved.dtype.element_ty
    if form.many:
        moved = moved.to(bits, bitcast=True)
        known = tl.load(memory.moved + replica * graphs + graph, mask=live, other=0)
        at = memory.moved + replica * graphs + graph
        tl.atomic_max(at, moved, mask=live & running & (moved > known), sem="relaxed")
    else:
        most = tl.max(tl.where(live, moved, 0.0), 0).to(bits, bitcast=True)
        if most > tl.load(memory.moved + replica):
            tl.atomic_max(memory.moved + replica, most, sem="relaxed")


@jit
def turn_graphs(memory, replica, first, last, graphs, form: tl.constexpr):
    """Count the sweep, keep how far messages moved, freeze what has settled; how many graphs still run."""
    TURN: tl.constexpr = form.turn
    tolerance = tl.load(memory.options + 1)
    left = first * 0
    while first < last:
        graph = first + tl.arange(0, TURN)
        live = graph < last
        at = replica * graphs + graph
        running = tl.load(memory.running + at, mask=live, other=0)
        moved = tl.load(memory.moved + at, mask=live, other=0)
        residual = moved.to(memory.residual.dtype.element_ty, bitcast=True)
        sweeps = tl.load(memory.sweeps + at, mask=live, other=0)
        # Several warps look at the same graphs where these are few: all must have looked before one sets them back.
        tl.debug_barrier()
        tl.store(memory.residual + at, residual, mask=live & (running > 0))
        tl.store(memory.sweeps + at, sweeps + running, mask=live)
        tl.store(memory.moved + at, moved * 0, mask=live)
        if form.stops:
            running = running * (residual > tolerance).to(tl.int32)
            tl.store(memory.running + at, running, mask=live)
        left += tl.sum(running, 0)
        first += form.turn
    return left


@jit
def reset_totals(memory, replica, first, last, stale, nodes, form: tl.constexpr):
    """Back to the node potentials."""
    PADDED: tl.constexpr = form.padded
    TURN: tl.constexpr = form.turn
    source = replica * nodes * form.padded
    target = stale * nodes * form.padded
    while first < last:
        node = first + tl.arange(0, TURN)
        offset = node.to(tl.int64)[:, None] * form.padded + tl.arange(0, PADDED)[None, :]
        live = (node < last)[:, None]
        tl.store(memory.totals + target + offset, tl.load(memory.node + source + offset, mask=live), mask=live)
        if form.barred:
            count = tl.load(memory.node_counts + source + offset, mask=live)
            tl.store(memory.counts + target + offset, count, mask=live)
        first += form.turn


@jit
def collect_totals(memory, replica, first, last, fresh, edges, nodes, form: tl.constexpr):
    """Node potentials and all messages to each node, added up in the order of its arcs."""
    PADDED: tl.constexpr = form.padded
    TURN: tl.constexpr = form.turn
    state = tl.arange(0, PADDED)[None, :]
    messages = memory.messages + replica * ((edges + form.block - 1) // form.block) * (2 * form.message * form.block)
    target = fresh * nodes * form.padded
    while first < last:
        node = first + tl.arange(0, TURN)
        live = node < last
        offset = node.to(tl.int64)[:, None] * form.padded + state
        total = tl.load(memory.node + replica * nodes * form.padded + offset, mask=live[:, None], other=0.0)
        if form.barred:
            count = tl.load(memory.node_counts + replica * nodes * form.padded + offset, mask=live[:, None], other=0)
        arc = tl.load(memory.arc_offset + node, mask=live, other=0)
        end = tl.load(memory.arc_offset + node + 1, mask=live, other=0)
        left = tl.max(end - arc, 0)
        while left > 0:
            some = live & (arc < end)
            code = tl.load(memory.incoming + arc, mask=some, other=0)
            at = message_offset((code // 2)[:, None], (code % 2)[:, None], state, form)
            mask = some[:, None] & (state < form.numbers)
            value = tl.load(messages + at, mask=mask, other=0.0)
            if form.barred:
                no = value == -float("inf")
                count += no.to(tl.int32)
                value = tl.where(no, 0.0, value)
            if form.weighted:
                weight = tl.load(memory.weight + replica * edges + code // 2, mask=some, other=1.0)
                value = value * weight[:, None]
            total += value
            arc += 1
            left -= 1
        tl.store(memory.totals + target + offset, total, mask=live[:, None])
        if form.barred:
            tl.store(memory.counts + target + offset, count, mask=live[:, None])
        first += form.turn


@jit
def turn_nodes(memory, replica, first, last, old, new, edges, nodes, form: tl.constexpr):
    if form.atomic:
        reset_totals(memory, replica, first, last, old, nodes, form)
    else:
        collect_totals(memory, replica, first, last, new, edges, nodes, form)


@jit(do_not_specialize=UNSPECIALISED)
def sweep(memory, edges, nodes, graphs, programs, replicas, parity, form: tl.constexpr):
    """One sweep over all edges: `programs` for each replica."""
    replica = (tl.program_id(0) // programs).to(tl.int64)
    first = tl.program_id(0) % programs * form.width
    old = parity * replicas + replica
    new = (1 - parity) * replicas + replica
    if form.many:
        sweep_block(memory, replica, first, edges, old, new, edges, nodes, graphs, form)
    else:
        if tl.load(memory.running + replica) > 0:
            sweep_block(memory, replica, first, edges, old, new, edges, nodes, graphs, form)


@jit(do_not_specialize=UNSPECIALISED)
def turn(memory, edges, nodes, graphs, programs, replicas, parity, form: tl.constexpr):
    """What comes after a sweep: `programs` for each replica."""
    replica = (tl.program_id(0) // programs).to(tl.int64)
    first = tl.program_id(0) % programs * form.turn
    old = parity * replicas + replica
    new = (1 - parity) * replicas + replica
    last_node = tl.minimum(first + form.turn, nodes)
    last_graph = tl.minimum(first + form.turn, graphs)
    turn_nodes(memory, replica, first, last_node, old, new, edges, nodes, form)
    turn_graphs(memory, replica, first, last_graph, graphs, form)


@jit(do_not_specialize=UNSPECIALISED)
def solve_groups(memory, edges, nodes, graphs, programs, replicas, max_sweeps, form: tl.constexpr):
    """All sweeps over a group of small graphs, which nobody else touches: `programs` groups for each replica."""
    replica = (tl.program_id(0) // programs).to(tl.int64)
    bounds = memory.groups + tl.program_id(0) % programs
    first_edge, last_edge = tl.load(bounds), tl.load(bounds + 1)
    first_node, last_node = tl.load(bounds + programs + 1), tl.load(bounds + programs + 2)
    first_graph, last_graph = tl.load(bounds + 2 * programs + 2), tl.load(bounds + 2 * programs + 3)
    done = 0
    left = last_graph - first_graph
    while (done < max_sweeps) & (left > 0):
        old = (done % 2) * replicas + replica
        new = (1 - done % 2) * replicas + replica
        first = first_edge
        while first < last_edge:
            sweep_block(memory, replica, first, last_edge, old, new, edges, nodes, graphs, form)
            first += form.width
        tl.debug_barrier()
        turn_nodes(memory, replica, first_node, last_node, old, new, edges, nodes, form)
        left = turn_graphs(memory, replica, first_graph, last_graph, graphs, form)
        tl.debug_barrier()
        done += 1
