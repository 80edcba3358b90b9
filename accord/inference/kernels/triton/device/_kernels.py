"""The kernels that are launched: one sweep over a large graph, or all sweeps over a group of small ones.

Totals, and the largest change of a message, are kept for three sweeps in rotation: a sweep reads those of the sweep
before, adds to its own, and clears those of the next. So no program writes what another reads, and one launch does a
whole sweep. A graph runs while its messages change by more than the tolerance. Once they do not, the change is copied
from sweep to sweep, and the totals of its last sweep stay where they are. In deterministic mode `sweep` adds nothing;
`collect` follows and adds up the messages of each node in a fixed order.

Loops are `while`, since the interpreter does not support `range` over values of the device.
"""
# mypy: ignore-errors
# ruff: noqa: D103

from accord._triton import jit, tl
from accord.inference.kernels.triton.device._edges import sweep_edges
from accord.inference.kernels.triton.device._rows import message_offset

UNSPECIALISED = ["edges", "nodes", "graphs", "programs", "replicas", "number", "max_sweeps"]  # one kernel for all sizes


@jit
def turns(number, replica, replicas):
    """Positions of a replica's values for the sweep before this one, for this one and for the next."""
    turn = number % 3  # before adding, since the largest number has no successor in 32 bits
    before = (turn + 2) % 3 * replicas + replica
    now = turn * replicas + replica
    after = (turn + 1) % 3 * replicas + replica
    return before, now, after


@jit
def exceeds(moved, memory):
    """Whether a change, given as bits, exceeds the tolerance."""
    return moved.to(memory.node.dtype.element_ty, bitcast=True) > tl.load(memory.options + 1)


@jit
def sweep_block(memory, replica, first, last, before, now, edges, nodes, graphs, form: tl.constexpr):
    """Update `width` edges from `first` on, up to `last`."""
    WIDTH: tl.constexpr = form.width
    position = first + tl.arange(0, WIDTH)
    live = position < last
    running = live
    graph = tl.zeros((WIDTH,), tl.int32)
    if form.many:
        graph = tl.load(memory.graph + position, mask=live, other=0)
        running = exceeds(tl.load(memory.moved + before * graphs + graph, mask=live, other=0), memory)
    moved, stuck, stuck_back = sweep_edges(memory, replica, position, live, running, before, now, edges, nodes, form)
    if form.barred:
        arc = replica * 2 * edges + position
        tl.atomic_min(memory.stuck + 0 * position, arc, mask=stuck & live & running, sem="relaxed")
        tl.atomic_min(memory.stuck + 0 * position, arc + edges, mask=stuck_back & live & running, sem="relaxed")
    # Non-negative floats are ordered like their bits, and there is an atomic maximum for integers. A value that is not
    # larger is not written: reading it first is cheaper than thousands of programs waiting for one word.
    bits = memory.moved.dtype.element_ty
    if form.many:
        moved = moved.to(bits, bitcast=True)
        at = memory.moved + now * graphs + graph
        known = tl.load(at, mask=live, other=0)
        tl.atomic_max(at, moved, mask=live & running & (moved > known), sem="relaxed")
    else:
        most = tl.max(tl.where(live, moved, 0.0), 0).to(bits, bitcast=True)
        if most > tl.load(memory.moved + now):
            tl.atomic_max(memory.moved + now, most, sem="relaxed")


@jit
def count_sweep(memory, replica, first, last, number, before, now, after, graphs, form: tl.constexpr):
    """Count the sweep for graphs that run, copy the last change of the others; returns how many run."""
    LANES: tl.constexpr = form.lanes
    left = first * 0
    while first < last:
        graph = first + tl.arange(0, LANES)
        live = graph < last
        moved = tl.load(memory.moved + before * graphs + graph, mask=live, other=0)
        running = live & exceeds(moved, memory)
        tl.store(memory.sweeps + replica * graphs + graph, (graph * 0 + number + 1).to(tl.int64), mask=running)
        tl.store(memory.moved + now * graphs + graph, moved, mask=live & ~running)
        tl.store(memory.moved + after * graphs + graph, moved * 0, mask=live)
        left += tl.sum(running.to(tl.int32), 0)
        first += form.lanes
    return left


@jit
def clear_totals(memory, replica, first, last, after, nodes, form: tl.constexpr):
    """Set the totals of the next sweep to the node potentials."""
    PADDED: tl.constexpr = form.padded
    NODES: tl.constexpr = form.nodes
    state = tl.arange(0, PADDED)[None, :]
    while first < last:
        node = first + tl.arange(0, NODES)
        live = (node < last)[:, None]
        given = (replica * nodes + node)[:, None] * form.numbers + state
        there = live & (state < form.numbers)
        at = (after * nodes + node)[:, None] * form.padded + state
        tl.store(memory.totals + at, tl.load(memory.node + given, mask=there, other=0.0), mask=live)
        if form.barred:
            tl.store(memory.counts + at, tl.load(memory.node_counts + given, mask=there, other=0), mask=live)
        first += form.nodes


@jit
def collect_totals(memory, replica, first, last, now, edges, nodes, form: tl.constexpr):
    """Add up the potential of each node and all messages to it, in the order of its arcs."""
    PADDED: tl.constexpr = form.padded
    NODES: tl.constexpr = form.nodes
    state = tl.arange(0, PADDED)[None, :]
    messages = memory.messages + replica * ((edges + form.block - 1) // form.block) * (2 * form.message * form.block)
    while first < last:
        node = first + tl.arange(0, NODES)
        live = node < last
        given = (replica * nodes + node)[:, None] * form.numbers + state
        there = live[:, None] & (state < form.numbers)
        total = tl.load(memory.node + given, mask=there, other=0.0)
        if form.barred:
            count = tl.load(memory.node_counts + given, mask=there, other=0)
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
        target = (now * nodes + node)[:, None] * form.padded + state
        tl.store(memory.totals + target, total, mask=live[:, None])
        if form.barred:
            tl.store(memory.counts + target, count, mask=live[:, None])
        first += form.nodes


@jit
def share_of(program, programs, total, AT_ONCE: tl.constexpr):
    """Where a program's share of `total` items begins and ends; shares are multiples of AT_ONCE."""
    share = ((total + programs - 1) // programs + AT_ONCE - 1) // AT_ONCE * AT_ONCE
    first = tl.minimum(program.to(tl.int64) * share, total).to(tl.int32)  # there may be many more programs than items
    return first, tl.minimum(first + share, total)


@jit(do_not_specialize=UNSPECIALISED)
def sweep(memory, edges, nodes, graphs, programs, replicas, number, form: tl.constexpr):
    """One sweep over all edges; `programs` programs for each replica."""
    replica = (tl.program_id(0) // programs).to(tl.int64)
    program = tl.program_id(0) % programs
    before, now, after = turns(number, replica, replicas)
    first, last = share_of(program, programs, graphs, form.lanes)
    count_sweep(memory, replica, first, last, number, before, now, after, graphs, form)
    running = exceeds(tl.load(memory.moved + before * graphs), memory)
    if form.many:  # checked for each edge later
        running = running | (graphs > 0)
    if running:
        if form.atomic:
            first, last = share_of(program, programs, nodes, form.nodes)
            clear_totals(memory, replica, first, last, after, nodes, form)
        sweep_block(memory, replica, program * form.width, edges, before, now, edges, nodes, graphs, form)


@jit(do_not_specialize=UNSPECIALISED)
def collect(memory, edges, nodes, graphs, programs, replicas, number, form: tl.constexpr):
    """Totals after a sweep; `programs` programs for each replica. Takes the arguments of `sweep`."""
    replica = (tl.program_id(0) // programs).to(tl.int64)
    _, now, _ = turns(number, replica, replicas)
    first, last = share_of(tl.program_id(0) % programs, programs, nodes, form.nodes)
    collect_totals(memory, replica, first, last, now, edges, nodes, form)


@jit
def hand_over(memory, replica, first, last, number, max_sweeps, replicas, graphs, form: tl.constexpr):
    """Copy the last changes to where they would be if this group had run `max_sweeps` sweeps."""
    LANES: tl.constexpr = form.lanes
    source, _, _ = turns(number, replica, replicas)
    target, _, _ = turns(max_sweeps, replica, replicas)
    while first < last:
        graph = first + tl.arange(0, LANES)
        live = graph < last
        moved = tl.load(memory.moved + source * graphs + graph, mask=live, other=0)
        tl.store(memory.moved + target * graphs + graph, moved, mask=live)
        first += form.lanes


@jit
def hand_over_totals(memory, replica, first, last, number, max_sweeps, replicas, nodes, form: tl.constexpr):
    """The same for the totals that sweep `number` would read."""
    PADDED: tl.constexpr = form.padded
    NODES: tl.constexpr = form.nodes
    state = tl.arange(0, PADDED)[None, :]
    source, _, _ = turns(number, replica, replicas)
    target, _, _ = turns(max_sweeps, replica, replicas)
    while first < last:
        node = (first + tl.arange(0, NODES))[:, None]
        live = node < last
        held = (source * nodes + node) * form.padded + state
        wanted = (target * nodes + node) * form.padded + state
        tl.store(memory.totals + wanted, tl.load(memory.totals + held, mask=live, other=0.0), mask=live)
        if form.barred:
            tl.store(memory.counts + wanted, tl.load(memory.counts + held, mask=live, other=0), mask=live)
        first += form.nodes


@jit(do_not_specialize=UNSPECIALISED)
def solve_groups(memory, edges, nodes, graphs, programs, replicas, max_sweeps, form: tl.constexpr):
    """All sweeps over a group of small graphs, which no other program touches; `programs` groups for each replica."""
    replica = (tl.program_id(0) // programs).to(tl.int64)
    bounds = memory.groups + tl.program_id(0) % programs
    first_edge, last_edge = tl.load(bounds), tl.load(bounds + 1)
    first_node, last_node = tl.load(bounds + programs + 1), tl.load(bounds + programs + 2)
    first_graph, last_graph = tl.load(bounds + 2 * programs + 2), tl.load(bounds + 2 * programs + 3)
    number = 0
    left = last_graph - first_graph
    while (number < max_sweeps) & (left > 0):
        before, now, after = turns(number, replica, replicas)
        left = count_sweep(memory, replica, first_graph, last_graph, number, before, now, after, graphs, form)
        if left > 0:
            first = first_edge
            while first < last_edge:
                sweep_block(memory, replica, first, last_edge, before, now, edges, nodes, graphs, form)
                first += form.width
            if form.atomic:
                clear_totals(memory, replica, first_node, last_node, after, nodes, form)
            else:
                tl.debug_barrier()
                collect_totals(memory, replica, first_node, last_node, now, edges, nodes, form)
        tl.debug_barrier()
        number += 1
    hand_over(memory, replica, first_graph, last_graph, number, max_sweeps, replicas, graphs, form)
    number -= (left == 0).to(tl.int32)  # the last sweep had nothing to do, and wrote no totals
    hand_over_totals(memory, replica, first_node, last_node, number, max_sweeps, replicas, nodes, form)
