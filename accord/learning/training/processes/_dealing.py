"""Which graphs of a batch each process gets: about the same work for all, and the same division in every process."""

import heapq
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.graphs import GraphBatch, Share, topology_triangles
from accord.learning.training.processes._group import Processes


def deal(work: Sequence[int], count: int) -> list[list[int]]:
    """Places of graphs for each of `count` processes, ascending; a process gets none where there are too few graphs.

    The largest graph goes first, each to the process that has least work so far.

    Args:
        work: of each graph of the batch.
        count: how many processes there are.
    """
    hands: list[list[int]] = [[] for _ in range(count)]
    loads = [(0, process) for process in range(count)]
    for place in sorted(range(len(work)), key=lambda place: (-work[place], place)):
        load, process = heapq.heappop(loads)
        hands[process].append(place)
        heapq.heappush(loads, (load + max(work[place], 1), process))
    return [sorted(hand) for hand in hands]


def share_of_batch(
    graphs: Sequence[Data], places: Sequence[int], work: Sequence[int], processes: Processes, triangles: bool
) -> GraphBatch:
    """This process's share of a batch. All processes call it for the same batch, and read their own graphs only.

    A process that gets no graph has the smallest one of another process, and counts for nothing (`Share.idle`): so it
    takes part in everything that the processes do together.

    Args:
        graphs: all training graphs.
        places: which of them form the batch, in this order.
        work: of each training graph.
        processes: that share the batch.
        triangles: whether triangles are scored, so that they have to be counted.
    """
    sizes = [work[place] for place in places]
    own = deal(sizes, processes.count)[processes.rank]
    idle = not own
    own = own or [min(range(len(places)), key=lambda place: (sizes[place], place))]
    found = [graphs[places[place]] for place in own]
    batch = GraphBatch.collate(found)
    counts = torch.zeros(len(places), 3, dtype=torch.long)
    if not idle:
        counts[own] = _rows_of_graphs(found, batch, triangles).cpu()
    share = Share(processes.sum(counts), torch.tensor(own), idle)
    return replace(batch, share=share)


def _rows_of_graphs(graphs: Sequence[Data], batch: GraphBatch, triangles: bool) -> Tensor:
    """Nodes, edges and triangles of each graph [graphs, 3]."""
    nodes = torch.tensor([len(graph.x) for graph in graphs], device=batch.x.device)
    owner = torch.repeat_interleave(torch.arange(len(graphs), device=nodes.device), nodes)
    firsts = [batch.topology.edge_index[0]]
    firsts.append(topology_triangles(batch.topology).corner[:, 0] if triangles else firsts[0][:0])
    return torch.stack([nodes, *(torch.bincount(owner[rows], minlength=len(graphs)) for rows in firsts)], 1)
