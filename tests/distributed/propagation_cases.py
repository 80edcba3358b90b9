"""Graphs that are propagated on in parts, and what one process of several does with them."""

import os
import signal
from datetime import timedelta

import torch
import torch.distributed as dist

from accord.distributed import cut_field, cut_part, partition, propagate
from accord.errors import AccordError, InfeasibleError
from accord.field import PairwiseField


def grid(side):
    """Edges between the neighbours of a square grid."""
    numbers = torch.arange(side * side).reshape(side, side)
    across = torch.stack([numbers[:, :-1].flatten(), numbers[:, 1:].flatten()])
    down = torch.stack([numbers[:-1].flatten(), numbers[1:].flatten()])
    return torch.cat([across, down], 1)


def power_law(nodes, each, seed=0):
    """Each node joins `each` earlier ones, mostly those with many edges; nodes of thousands of edges come out."""
    draw = torch.Generator().manual_seed(seed)
    target = torch.arange(1, nodes).repeat_interleave(each)
    source = (torch.rand(len(target), generator=draw) ** 3 * target).long()
    return torch.unique(torch.stack([source, target]), dim=1)


def random_field(edge_index, states, dtype=torch.float64, seed=0, barred=False):
    """Potentials of moderate size; some pairs and states are forbidden if `barred`."""
    draw = torch.Generator().manual_seed(seed)
    nodes = int(edge_index.max()) + 2  # the last one has no edge
    node = torch.randn(nodes, states, generator=draw, dtype=dtype)
    edge = 0.4 * torch.randn(edge_index.shape[1], states, states, generator=draw, dtype=dtype)
    if barred:
        node[::7, 0] = -torch.inf
        edge[::5, 1, 1] = -torch.inf
    return PairwiseField(edge_index, node, edge)


def solve_all(rank, ranks, cases):
    """Beliefs of own nodes and their numbers, for each case."""
    return [solve(rank, ranks, *case) for case in cases]


def solve(rank, ranks, field, method, options):
    """What one process finds; as arrays, since tensors would be shared with a process that has ended."""
    part = cut_part(field.edge_index, partition(field.edge_index, field.num_nodes, ranks, method), rank, ranks)
    given = dict(options)
    if isinstance(given.get("edge_appearance"), torch.Tensor):
        given["edge_appearance"] = given["edge_appearance"][part.edges]
    found = propagate(part, cut_field(field, part), **given)
    own = part.num_own
    return {
        "nodes": part.nodes[:own].numpy(),
        "node": found.node[:own].numpy(),
        "labels": found.decode()[:own].numpy(),
        "sweeps": int(found.sweeps),
        "converged": bool(found.converged),
        "log_partition": float(found.log_partition),
        "bytes": found.bytes_sent,
        "rows": part.halo.rows_sent,
        "backend": found.backend,
    }


def killed_midway(rank, ranks, address, field, folder, after):
    """Process 1 kills itself once it has saved `after` checkpoints; the others end with exit status 3 if told so."""
    from accord.distributed.propagation import _checkpoint
    from accord.errors import ProcessLostError

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=ranks, timeout=timedelta(seconds=20))
    save, saved = _checkpoint.Checkpoints.save, []

    def save_and_die(self, sweep, residual, messages):
        if rank == 1 and len(saved) == after:
            os.kill(os.getpid(), signal.SIGKILL)
        save(self, sweep, residual, messages)
        saved.append(sweep)

    _checkpoint.Checkpoints.save = save_and_die
    try:
        solve(rank, ranks, field, "metis", {"tolerance": 1e-10, "damping": 0.5, "checkpoint": folder, "every": 2})
    except ProcessLostError:
        os._exit(3)
    os._exit(0)


def contradicted(rank, ranks, backend):
    """What each process raises when labels of the first part contradict each other, at once or sweeps later."""
    edge_index = torch.stack([torch.arange(9), torch.arange(1, 10)])
    part = cut_part(edge_index, (torch.arange(10) >= 5).long(), rank, ranks)
    raised = []
    for other in (1, 3):  # node 0 has state 0, this one state 1, and neighbours are equal
        field = PairwiseField(edge_index, torch.zeros(10, 2), torch.zeros(9, 2, 2)).forbid([(0, 1), (1, 0)])
        known = torch.full((10,), -1)
        known[0], known[other] = 0, 1
        try:
            propagate(part, cut_field(field.clamp(known), part), backend=backend)
        except InfeasibleError as error:
            raised.append(str(error))
    return raised


def refused(rank, ranks, folder):
    """What each process raises where only the last one is given something wrong, by what that is."""
    field, last = random_field(grid(8), 3), rank == ranks - 1
    part = cut_part(field.edge_index, partition(field.edge_index, field.num_nodes, ranks, "blocks"), rank, ranks)
    own = cut_field(field, part)

    def raised(field=own, **options):
        try:
            propagate(part, field, **options)
        except (AccordError, OSError) as error:
            return type(error).__name__, str(error)
        return None

    kept = {"max_sweeps": 6, "every": 2, "tolerance": 0.0}
    apart, damaged = folder / f"of process {rank}", folder / "damaged"
    found = {
        "field": raised(random_field(grid(3), 3) if last else own),
        "options": raised(every=0 if last else 1),
        "potentials": raised(own, edge_appearance=2.0 if last else 1.0),
        "folder": raised(checkpoint="/dev/null/folder" if last else folder / "one", **kept),
        "made apart": raised(checkpoint=apart, **kept),
        "made": raised(checkpoint=damaged, **kept),
    }
    if last:
        next(damaged.glob(f"*-{rank}-of-*")).write_bytes(b"nonsense")
    if rank == 0:
        (folder / "bad marker").mkdir()
        (folder / "bad marker" / "complete.json").write_text("{")
    dist.barrier()
    found["damaged"] = raised(checkpoint=damaged, **kept)
    found["not shared"] = raised(checkpoint=folder / "of process 0" if rank == 0 else folder / "elsewhere", **kept)
    found["bad marker"] = raised(checkpoint=folder / "bad marker", **kept)
    return found


def repeated(rank, ranks, folder):
    """Sweeps, convergence and residual of calls that are given again, without and with their checkpoint."""
    field = random_field(grid(8), 3)
    part = cut_part(field.edge_index, partition(field.edge_index, field.num_nodes, ranks, "hash"), rank, ranks)
    own, found = cut_field(field, part), []
    for name, options in {
        "some": {"max_sweeps": 6, "tolerance": 1e-9},
        "converged": {"max_sweeps": 400, "tolerance": 1e-4},
        "all": {"max_sweeps": 6, "tolerance": 0.0},
    }.items():
        runs = [{}] + 2 * [{"checkpoint": folder / name, "every": 1}]
        results = [propagate(part, own, **options, **kept) for kept in runs]
        found.append([(int(one.sweeps), bool(one.converged), float(one.residual)) for one in results])
    fewer = {"max_sweeps": 4, "tolerance": 1e-9}
    try:
        propagate(part, own, **fewer, checkpoint=folder / "some")
    except AccordError as error:
        return found, type(error).__name__, str(error)
    return found, None, None
