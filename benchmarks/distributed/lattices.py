"""Lattices of any size, of which each process makes its own part by arithmetic; nobody ever holds the whole.

Node i has an edge to i + o (modulo the number of nodes) for each offset o. Offsets 1 and w make a square grid of width
w, closed to a torus with a shift by one row at its seam. Processes own equal runs of consecutive nodes. All potentials
are pseudo-random functions of the number of a node or edge, so they do not depend on the number of processes.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from accord.distributed import Halo, Part
from accord.field import PairwiseField

STRENGTH = 0.5  # largest entry of a table of an edge; those of nodes are up to 1
CHUNK = 2**20  # numbers that are made at a time


def lattice_part(nodes: int, offsets: Sequence[int], rank: int, ranks: int) -> Part:
    """What one process holds of a lattice. Edge number i * len(offsets) + j leads from i to i + offsets[j]."""
    if not 0 < 2 * max(offsets) < nodes:
        raise ValueError(f"lattice_part: offset {max(offsets)} is not less than half of {nodes} nodes. Make it larger.")
    degree = len(offsets)
    first, last = (-(-nodes * process // ranks) for process in (rank, rank + 1))
    numbers, targets = edges_from(torch.arange(first, last), offsets, nodes)
    # Edges that come in from nodes before the first one, which wrap to the end of the lattice.
    before = torch.arange(first - max(offsets), first).remainder(nodes).sort().values
    before = before[(before < first) | (before >= last)]
    incoming, ends = edges_from(before, offsets, nodes)
    held = (ends >= first) & (ends < last)
    incoming, ends = incoming[held], ends[held]
    out = (targets < first) | (targets >= last)
    ghosts = torch.cat([targets[out], incoming // degree]).unique()

    def local(found: Tensor) -> Tensor:
        return torch.where(
            (found >= first) & (found < last), found - first, last - first + torch.searchsorted(ghosts, found)
        )

    below = int(torch.searchsorted(incoming, first * degree))  # edges are held in the order of their numbers
    own_sources = torch.arange(last - first).repeat_interleave(degree)
    edge_index = torch.empty(2, len(numbers) + len(incoming), dtype=torch.long)
    torch.cat([local(incoming[:below] // degree), own_sources, local(incoming[below:] // degree)], out=edge_index[0])
    torch.cat([local(ends[:below]), local(targets), local(ends[below:])], out=edge_index[1])
    del own_sources
    counted = torch.ones(edge_index.shape[1], dtype=torch.bool)
    counted[below : below + len(numbers)][out] = owner_of(targets[out], nodes, ranks) > rank
    sources = owner_of(incoming // degree, nodes, ranks) > rank
    counted[:below], counted[below + len(numbers) :] = sources[:below], sources[below:]
    # Own ends and the processes at the other end, of all edges between parts.
    mine = torch.cat([numbers[out] // degree, ends]) - first
    theirs = torch.cat([owner_of(targets[out], nodes, ranks), owner_of(incoming // degree, nodes, ranks)])
    send = [mine[theirs == process].unique() for process in range(ranks)]
    receive = torch.bincount(owner_of(ghosts, nodes, ranks), minlength=ranks).tolist()
    return Part(
        rank,
        ranks,
        nodes,
        torch.cat([torch.arange(first, last), ghosts]),
        edge_index,
        torch.cat([incoming[:below], numbers, incoming[below:]]),
        counted,
        Halo(last - first, send, receive),
    )


def edges_from(sources: Tensor, offsets: Sequence[int], nodes: int) -> tuple[Tensor, Tensor]:
    """Numbers and targets of the edges that leave some nodes, in the order of these."""
    degree = len(offsets)
    numbers = (sources[:, None] * degree + torch.arange(degree)).flatten()
    targets = (sources[:, None] + torch.tensor(list(offsets))).flatten()
    return numbers, targets.sub_(nodes * (targets >= nodes))


def owner_of(numbers: Tensor, nodes: int, ranks: int) -> Tensor:
    """The process of nodes, as `partition` with method "blocks"."""
    return numbers * ranks // nodes


def lattice_field(part: Part, states: int, dtype: torch.dtype = torch.float32) -> PairwiseField:
    """The potentials of a part of a lattice."""
    node = uniform(part.nodes, states, 0, dtype)
    edge = uniform(part.edges, states * states, 1, dtype).mul_(STRENGTH)
    return PairwiseField(part.edge_index, node, edge.view(-1, states, states))


def uniform(numbers: Tensor, width: int, seed: int, dtype: torch.dtype) -> Tensor:
    """Pseudo-random values between -1 and 1 [numbers, width], which depend on the number and the seed only."""
    found = torch.empty(len(numbers), width, dtype=dtype)
    columns = torch.arange(width)
    for some, to in zip(numbers.split(CHUNK // width), found.split(CHUNK // width), strict=True):
        to.copy_(mixed((some[:, None] * width + columns) * 2 + seed))
    return found


def mixed(keys: Tensor) -> Tensor:
    """Values between -1 and 1 of integers: the finaliser of splitmix64 on the keys' multiples of the golden ratio."""
    bits = (keys + 1) * -7046029254386353131
    for shift, factor in ((30, -4658895280553007687), (27, -7723592293110705685)):
        bits = (bits ^ ((bits >> shift) & (2 ** (64 - shift) - 1))) * factor
    return (bits >> 11).double() / 2**52
