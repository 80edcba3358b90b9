"""Kernels of fused attention; a group is one head of one replica.

A program handles one node and a few groups, and loops over the node's arcs in blocks. Programs of the same groups run
side by side, so that the rows they gather stay in the cache. One program computes every sum in a fixed order, which
makes the kernels deterministic. Tensors are contiguous: h [nodes, groups, channels], scores [nodes, groups].
"""

from accord._triton import jit, tl


@jit
def _leaky(x, slope):  # type: ignore[no-untyped-def]
    return tl.where(x < 0, x * slope, x)


@jit
def score_nodes(  # type: ignore[no-untyped-def]
    h,
    source,
    target,
    from_source,
    to_target,
    nodes,
    groups,
    channels,
    NODES: tl.constexpr,
    GROUPS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    blocks = tl.cdiv(nodes, NODES)
    node = (tl.program_id(0) % blocks * NODES + tl.arange(0, NODES)).to(tl.int64)
    group = tl.program_id(0) // blocks * GROUPS + tl.arange(0, GROUPS)
    channel = tl.arange(0, CHANNELS)
    vector = group[:, None] * channels + channel[None, :]
    there = (group < groups)[:, None] & (channel < channels)[None, :]
    at = (node * groups * channels)[:, None, None] + vector[None, :, :]
    rows = tl.load(h + at, (node < nodes)[:, None, None] & there[None, :, :], other=0.0).to(tl.float32)
    result = node[:, None] * groups + group[None, :]
    mask = (node < nodes)[:, None] & (group < groups)[None, :]
    first = tl.load(source + vector, there, other=0.0).to(tl.float32)
    tl.store(from_source + result, tl.sum(rows * first[None, :, :], 2), mask)
    second = tl.load(target + vector, there, other=0.0).to(tl.float32)
    tl.store(to_target + result, tl.sum(rows * second[None, :, :], 2), mask)


@jit
def average_over_arcs(  # type: ignore[no-untyped-def]
    start,
    source,
    h,
    from_source,
    to_target,
    keep,
    bias,
    out,
    log_sum,
    nodes,
    groups,
    channels,
    slope,
    scale,
    DROPS: tl.constexpr,
    BIASED: tl.constexpr,
    ARCS: tl.constexpr,
    GROUPS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    node = (tl.program_id(0) % nodes).to(tl.int64)
    group = tl.program_id(0) // nodes * GROUPS + tl.arange(0, GROUPS)
    channel = tl.arange(0, CHANNELS)
    vector = group[:, None] * channels + channel[None, :]
    present = group < groups
    there = present[:, None] & (channel < channels)[None, :]
    own = tl.load(to_target + node * groups + group, present, other=0.0)
    highest = tl.full([GROUPS], float("-inf"), tl.float32)
    total = tl.zeros([GROUPS], tl.float32)
    sums = tl.zeros([ARCS, GROUPS, CHANNELS], tl.float32)
    last = tl.load(start + node + 1)
    for first in range(tl.load(start + node), last, ARCS):
        arc = first + tl.arange(0, ARCS)
        enters = arc < last
        neighbour = tl.load(source + arc, enters, other=0).to(tl.int64)
        mask = enters[:, None] & present[None, :]
        score = own[None, :] + tl.load(from_source + neighbour[:, None] * groups + group[None, :], mask, other=0.0)
        score = tl.where(enters[:, None], _leaky(score, slope), float("-inf"))
        # Subtract the largest score so far, so that exp cannot overflow, and rescale the sums accordingly.
        higher = tl.maximum(highest, tl.max(score, 0))
        shift = tl.exp(highest - higher)
        weight = tl.exp(score - higher[None, :])
        total = total * shift + tl.sum(weight, 0)
        highest = higher
        if DROPS:
            kept = tl.load(keep + arc.to(tl.int64)[:, None] * groups + group[None, :], mask, other=0)
            weight = weight * kept.to(tl.float32) * scale
        at = (neighbour * groups * channels)[:, None, None] + vector[None, :, :]
        rows = tl.load(h + at, enters[:, None, None] & there[None, :, :], other=0.0).to(tl.float32)
        sums = sums * shift[None, :, None] + weight[:, :, None] * rows
    any_arc = total > 0
    total = tl.where(any_arc, total, 1.0)
    mean = tl.sum(sums, 0) / total[:, None]
    if BIASED:
        mean += tl.load(bias + vector, there, other=0.0).to(tl.float32)
    tl.store(out + node * groups * channels + vector, mean.to(out.dtype.element_ty), there)
    tl.store(log_sum + node * groups + group, tl.where(any_arc, highest, 0.0) + tl.log(total), present)


@jit
def gradient_at_sources(  # type: ignore[no-untyped-def]
    start,
    source,
    reverse,
    h,
    gradient,
    from_source,
    to_target,
    log_sum,
    keep,
    to_h,
    to_arcs,
    nodes,
    groups,
    channels,
    arcs,
    slope,
    scale,
    DROPS: tl.constexpr,
    ARCS: tl.constexpr,
    GROUPS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Gradient of h at one source, and d of the arcs that leave it, each stored at the position of its reverse."""
    node = (tl.program_id(0) % nodes).to(tl.int64)
    group = tl.program_id(0) // nodes * GROUPS + tl.arange(0, GROUPS)
    channel = tl.arange(0, CHANNELS)
    vector = group[:, None] * channels + channel[None, :]
    present = group < groups
    there = present[:, None] & (channel < channels)[None, :]
    own = tl.load(h + node * groups * channels + vector, there, other=0.0).to(tl.float32)
    own_score = tl.load(from_source + node * groups + group, present, other=0.0)
    sums = tl.zeros([ARCS, GROUPS, CHANNELS], tl.float32)
    last = tl.load(start + node + 1)
    for first in range(tl.load(start + node), last, ARCS):
        arc = first + tl.arange(0, ARCS)
        leaves = arc < last
        neighbour = tl.load(source + arc, leaves, other=0).to(tl.int64)
        mask = leaves[:, None] & present[None, :]
        other = neighbour[:, None] * groups + group[None, :]
        score = _leaky(own_score[None, :] + tl.load(to_target + other, mask, other=0.0), slope)
        weight = tl.where(mask, tl.exp(score - tl.load(log_sum + other, mask, other=0.0)), 0.0)
        at = (neighbour * groups * channels)[:, None, None] + vector[None, :, :]
        rows = tl.load(gradient + at, leaves[:, None, None] & there[None, :, :], other=0.0).to(tl.float32)
        product = tl.sum(rows * own[None, :, :], 2)
        if DROPS:
            back = tl.load(reverse + arc, leaves, other=0)
            kept = tl.load(keep + back[:, None] * groups + group[None, :], mask, other=0).to(tl.float32) * scale
            product, weight = product * kept, weight * kept
        tl.store(to_arcs + group.to(tl.int64)[None, :] * arcs + arc[:, None], product, mask)
        sums += weight[:, :, None] * rows
    tl.store(to_h + node * groups * channels + vector, tl.sum(sums, 0).to(to_h.dtype.element_ty), there)


@jit
def gradient_of_scores(  # type: ignore[no-untyped-def]
    start,
    source,
    reverse,
    from_source,
    to_target,
    log_sum,
    to_arcs,
    to_to_target,
    nodes,
    groups,
    arcs,
    slope,
    ARCS: tl.constexpr,
    GROUPS: tl.constexpr,
):
    """Turn d of the arcs that enter one target into the gradients of their scores, and sum these."""
    node = (tl.program_id(0) % nodes).to(tl.int64)
    group = tl.program_id(0) // nodes * GROUPS + tl.arange(0, GROUPS)
    present = group < groups
    own = tl.load(to_target + node * groups + group, present, other=0.0)
    own_sum = tl.load(log_sum + node * groups + group, present, other=0.0)
    begin, last = tl.load(start + node), tl.load(start + node + 1)
    mean = tl.zeros([GROUPS], tl.float32)
    for first in range(begin, last, ARCS):
        arc = first + tl.arange(0, ARCS)
        mask = (arc < last)[:, None] & present[None, :]
        neighbour = tl.load(source + arc, arc < last, other=0).to(tl.int64)
        at = group.to(tl.int64)[None, :] * arcs + tl.load(reverse + arc, arc < last, other=0)[:, None]
        score = own[None, :] + tl.load(from_source + neighbour[:, None] * groups + group[None, :], mask, other=0.0)
        weight = tl.exp(_leaky(score, slope) - own_sum[None, :])
        mean += tl.sum(tl.where(mask, weight * tl.load(to_arcs + at, mask, other=0.0), 0.0), 0)
    total = tl.zeros([GROUPS], tl.float32)
    for first in range(begin, last, ARCS):
        arc = first + tl.arange(0, ARCS)
        mask = (arc < last)[:, None] & present[None, :]
        neighbour = tl.load(source + arc, arc < last, other=0).to(tl.int64)
        at = group.to(tl.int64)[None, :] * arcs + tl.load(reverse + arc, arc < last, other=0)[:, None]
        score = own[None, :] + tl.load(from_source + neighbour[:, None] * groups + group[None, :], mask, other=0.0)
        weight = tl.exp(_leaky(score, slope) - own_sum[None, :])
        change = weight * (tl.load(to_arcs + at, mask, other=0.0) - mean[None, :]) * tl.where(score < 0, slope, 1.0)
        tl.store(to_arcs + at, change, mask)
        total += tl.sum(tl.where(mask, change, 0.0), 0)
    tl.store(to_to_target + node * groups + group, total, present)


@jit
def sum_leaving(  # type: ignore[no-untyped-def]
    start, to_arcs, to_from_source, nodes, groups, arcs, ARCS: tl.constexpr, GROUPS: tl.constexpr
):
    node = (tl.program_id(0) % nodes).to(tl.int64)
    group = tl.program_id(0) // nodes * GROUPS + tl.arange(0, GROUPS)
    present = group < groups
    total = tl.zeros([GROUPS], tl.float32)
    last = tl.load(start + node + 1)
    for first in range(tl.load(start + node), last, ARCS):
        arc = first + tl.arange(0, ARCS)
        mask = (arc < last)[:, None] & present[None, :]
        total += tl.sum(tl.load(to_arcs + group.to(tl.int64)[None, :] * arcs + arc[:, None], mask, other=0.0), 0)
    tl.store(to_from_source + node * groups + group, total, present)


@jit
def gradient_of_vectors(  # type: ignore[no-untyped-def]
    h,
    source,
    target,
    to_from_source,
    to_to_target,
    to_h,
    to_first_vector,
    to_second_vector,
    nodes,
    groups,
    channels,
    chunks,
    CHUNK: tl.constexpr,
    NODES: tl.constexpr,
    GROUPS: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    """Add the gradient through the scores to that of h, and sum that of the vectors over each chunk of nodes."""
    chunk = tl.program_id(0) % chunks
    group = tl.program_id(0) // chunks * GROUPS + tl.arange(0, GROUPS)
    channel = tl.arange(0, CHANNELS)
    vector = group[:, None] * channels + channel[None, :]
    present = group < groups
    there = present[:, None] & (channel < channels)[None, :]
    first_vector = tl.load(source + vector, there, other=0.0).to(tl.float32)
    second_vector = tl.load(target + vector, there, other=0.0).to(tl.float32)
    to_first = tl.zeros([GROUPS, CHANNELS], tl.float32)
    to_second = tl.zeros([GROUPS, CHANNELS], tl.float32)
    for offset in range(0, CHUNK, NODES):
        node = (chunk * CHUNK + offset + tl.arange(0, NODES)).to(tl.int64)
        mask = (node < nodes)[:, None] & present[None, :]
        first = tl.load(to_from_source + node[:, None] * groups + group[None, :], mask, other=0.0)
        second = tl.load(to_to_target + node[:, None] * groups + group[None, :], mask, other=0.0)
        at = (node * groups * channels)[:, None, None] + vector[None, :, :]
        rows_there = (node < nodes)[:, None, None] & there[None, :, :]
        change = first[:, :, None] * first_vector[None, :, :] + second[:, :, None] * second_vector[None, :, :]
        change += tl.load(to_h + at, rows_there, other=0.0).to(tl.float32)
        tl.store(to_h + at, change.to(to_h.dtype.element_ty), rows_there)
        rows = tl.load(h + at, rows_there, other=0.0).to(tl.float32)
        to_first += tl.sum(first[:, :, None] * rows, 0)
        to_second += tl.sum(second[:, :, None] * rows, 0)
    at = chunk.to(tl.int64) * groups * channels + vector
    tl.store(to_first_vector + at, to_first, there)
    tl.store(to_second_vector + at, to_second, there)
