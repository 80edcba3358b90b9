"""Belief propagation on one graph that two processes hold in parts: with more machines, no one has to hold it all.

python examples/parts.py
"""

from tempfile import TemporaryDirectory

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import accord
from accord.distributed import cut_field, cut_part, partition, propagate

PROCESSES, SIDE = 2, 30


def made_field() -> accord.PairwiseField:
    """A grid of noisy nodes whose neighbours tend to agree; the same in every process."""
    numbers = torch.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across = torch.stack([numbers[:, :-1].flatten(), numbers[:, 1:].flatten()])
    down = torch.stack([numbers[:-1].flatten(), numbers[1:].flatten()])
    edge_index = torch.cat([across, down], dim=1)
    node = torch.randn(SIDE * SIDE, 3, generator=torch.Generator().manual_seed(0))
    return accord.PairwiseField(edge_index, node, 0.5 * torch.eye(3).expand(edge_index.shape[1], 3, 3))


def work(rank: int, folder: str) -> None:
    """What each process does; it needs its own part only. Here the part is cut out of a field that it has made."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=PROCESSES)
    field = made_field()
    owner = partition(field.edge_index, field.num_nodes, PROCESSES)  # by METIS: few edges between the parts
    part = cut_part(field.edge_index, owner, rank, PROCESSES)
    # With checkpoint=FOLDER, the same call goes on from the last checkpoint after a process has died.
    found = propagate(part, cut_field(field, part))
    own, labels = part.nodes[: part.num_own], found.decode()[: part.num_own]
    whole = accord.propagate(field)  # one process holds this graph easily, so the answers can be compared
    print(
        f"process {rank}: {part.num_own} of {field.num_nodes} nodes, {found.bytes_sent} bytes sent in each of "
        f"{int(found.sweeps)} sweeps; beliefs differ from one process by "
        f"{float((found.node[: part.num_own].exp() - whole.node[own].exp()).abs().max()):.0e} at most, "
        f"labels at {int((labels != whole.decode()[own]).sum())} nodes",
        flush=True,
    )
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        mp.spawn(work, (folder,), PROCESSES)
