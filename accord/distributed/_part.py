"""One process's part of a graph: its own nodes, their edges, and the neighbours that other processes own."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.distributed._halo import Halo


@dataclass(frozen=True, eq=False)
class Part:
    """What one process holds of a graph.

    Own nodes come first, in ascending order of their numbers in the whole graph; then ghosts, grouped by owner and in
    ascending order. Every edge with an own end is held, so an edge between two parts is held by both.

    Args:
        rank: this process.
        ranks: how many processes there are.
        num_nodes: nodes of the whole graph.
        nodes: [own + ghosts], their numbers in the whole graph.
        edge_index: [2, edges], each undirected edge once, in the numbers of this part and its stored direction.
        edges: [edges], their numbers in the whole graph, ascending.
        counted: [edges], whether this part is the one that counts the edge in sums over the whole graph.
        halo: the exchange with other processes.
    """

    rank: int
    ranks: int
    num_nodes: int
    nodes: Tensor
    edge_index: Tensor
    edges: Tensor
    counted: Tensor
    halo: Halo

    @property
    def num_own(self) -> int:
        """Nodes that this process owns."""
        return self.halo.num_own


def cut_part(edge_index: Tensor, owner: Tensor, rank: int, ranks: int) -> Part:
    """The part of one process, cut out of a graph that is in memory; every process calls it with the same graph.

    Args:
        edge_index: [2, edges], each undirected edge once.
        owner: [nodes], the process of each node (`partition`).
        rank: this process.
        ranks: how many processes there are.
    """
    source, target = owner[edge_index[0]], owner[edge_index[1]]
    edges = ((source == rank) | (target == rank)).nonzero().flatten()
    ends = edge_index[:, edges]
    own = (owner == rank).nonzero().flatten()
    touched = ends.unique()
    ghosts = touched[owner[touched] != rank]
    ghosts = ghosts[torch.argsort(owner[ghosts], stable=True)]
    nodes = torch.cat([own, ghosts])
    place = torch.full((len(owner),), -1)
    place[nodes] = torch.arange(len(nodes))
    receive = torch.bincount(owner[ghosts], minlength=ranks).tolist()
    # An own node is sent to every process that owns one of its neighbours, which has it as a ghost in this same order.
    send = []
    for process in range(ranks):
        crossing = owner[ends] == process
        needed = torch.cat([ends[0][crossing[1]], ends[1][crossing[0]]]).unique()
        send.append(place[needed[owner[needed] == rank]] if process != rank else needed[:0])
    counted = torch.minimum(source, target)[edges] == rank
    return Part(rank, ranks, len(owner), nodes, place[ends], edges, counted, Halo(len(own), send, receive))
