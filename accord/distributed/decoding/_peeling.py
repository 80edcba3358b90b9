"""Leaf peeling of a graph that is in parts: the rounds and the core of the whole graph, as each part sees them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.distributed._together import total
from accord.graphs.structure._peeling import Peeling, PeelingRound


@dataclass(frozen=True)
class PartPeeling(Peeling):
    """Rounds and core, as far as a part sees them; all processes have the same number of rounds."""

    without_loops: bool  # the whole graph

    @property
    def is_forest(self) -> bool:
        """Whether the whole graph has no loop."""
        return self.without_loops


def peel_part(part: Part, device: torch.device) -> PartPeeling:
    """As `accord.graphs.structure._peeling.peel`, with the result on a device; all processes call it together.

    A part sees all edges of its own nodes. So it knows their degrees, and those of ghosts come from their owners. A
    leaf that is removed is seen where its edge is: by the owners of both ends.
    """
    count, own = len(part.nodes), part.num_own
    number = part.nodes.numpy()
    source, target = part.edge_index.numpy()
    neighbour_sum, edge_sum, here = (np.zeros(count, dtype=np.int64) for _ in range(3))  # of edges that are here
    for near, far in ((source, target), (target, source)):
        np.add.at(neighbour_sum, near, far)
        np.add.at(edge_sum, near, np.arange(source.size))
        np.add.at(here, near, 1)
    state = torch.zeros(count, 2, dtype=torch.long)  # remaining degree, and whether the node was removed
    degree, peeled = state.numpy().T
    degree[:own] = here[:own]
    peeled_edge = np.zeros(source.size, dtype=bool)
    rounds = []
    while True:
        part.halo.exchange(state)
        frontier = np.flatnonzero((degree == 1) & (peeled == 0) & (here == 1))
        parent = neighbour_sum[frontier]
        goes = (degree[parent] != 1) | (number[frontier] > number[parent])
        leaf, parent = frontier[goes], parent[goes]
        if not int(total(torch.tensor(leaf.size), part.halo.group)):
            break
        order = np.argsort(number[leaf])  # so that sums are made in the order of the whole graph
        leaf, parent = leaf[order], parent[order]
        edge = edge_sum[leaf]
        rounds.append((leaf, parent, edge, source[edge] == leaf))
        peeled[leaf], peeled_edge[edge] = 1, True
        degree[leaf], here[leaf] = 0, 0
        for values, removed in ((degree, 1), (here, 1), (neighbour_sum, leaf), (edge_sum, edge)):
            np.subtract.at(values, parent, removed)

    def tensor(values: np.ndarray) -> Tensor:
        return torch.from_numpy(values).to(device)

    core_edge = tensor(~peeled_edge)
    loops = int(total(core_edge.sum().cpu(), part.halo.group))
    listed = tuple(PeelingRound(*map(tensor, one)) for one in rounds)
    return PartPeeling(listed, tensor(peeled == 0), core_edge, loops == 0)


def to_nodes_first(values: Tensor) -> Tensor:
    """[R, nodes, ...] as [nodes, R, ...], the layout of a halo exchange, in memory of its own."""
    return values.transpose(0, 1).clone(memory_format=torch.contiguous_format)
