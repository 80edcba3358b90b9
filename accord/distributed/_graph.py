"""One process's part of a graph with its features, and as the networks read it."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.distributed._part import Part, cut_part
from accord.distributed._together import total
from accord.encoders.replica import agree_on_sparsity
from accord.errors import GraphError
from accord.graphs import EDGES, NODES, GraphBatch, graph_topology


@dataclass(frozen=True, eq=False)
class PartGraph:
    """What one process holds of a graph: its part, and what is known about its own nodes and their edges.

    Edges are kept as they were given, like those of a `Data`: the mean of an edge's attributes over both directions,
    for example, needs both.

    Args:
        part: own nodes, ghosts and edges.
        x: [own, features].
        ids: [own], the ids of own nodes.
        edge_index: [2, columns], the columns of the whole graph that have an own end, in their order and in the
            numbers of this part; repeats, both directions and self-loops included.
        edge_attr: [columns, attributes].
        y: [own] or [own, tasks], labels; -1 where one is missing.
        feature_names: of the columns of `x`; None where they go by position.
        edge_names: of the columns of `edge_attr`.
    """

    part: Part
    x: Tensor
    ids: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None = None
    y: Tensor | None = None
    feature_names: tuple[str, ...] | None = None
    edge_names: tuple[str, ...] | None = None

    def to_data(self) -> Data:
        """Own nodes and ghosts as a `Data`; the features of ghosts are zeros, which `part_batch` replaces."""
        ghosts = self.x.new_zeros(self.part.halo.num_ghosts, self.x.shape[1])
        data = Data(x=torch.cat([self.x, ghosts]), edge_index=self.edge_index)
        if self.edge_attr is not None:
            data.edge_attr = self.edge_attr
        for place, names in ((NODES, self.feature_names), (EDGES, self.edge_names)):
            if names is not None:
                data[place.names] = list(names)
        return data


def cut_graph(data: Data, owner: Tensor, rank: int, ranks: int) -> PartGraph:
    """The part of one process, cut out of a graph that is in memory; every process calls it with the same graph.

    Args:
        data: with `x` and `edge_index`; `node_id`, if it has them, become the ids.
        owner: [nodes], the process of each node (`partition`).
        rank: this process.
        ranks: how many processes there are.
    """
    structure = graph_topology(data)
    if owner.shape != (structure.num_nodes,) or (
        owner.numel() and not 0 <= int(owner.min()) <= int(owner.max()) < ranks
    ):
        raise GraphError(
            f"cut_graph: owner has shape {list(owner.shape)} for {structure.num_nodes} nodes, or numbers outside of 0 "
            f"to {ranks - 1}. Give the process of each node, as partition() returns it."
        )
    part = cut_part(structure.edge_index, owner, rank, ranks)
    own = part.nodes[: part.num_own]
    columns = data.edge_index if data.edge_index is not None else structure.edge_index
    held = (owner[columns] == rank).any(0).nonzero().flatten()
    local = torch.full((len(owner),), -1)
    local[part.nodes] = torch.arange(len(part.nodes))
    names = {name: tuple(data[place.names]) if data.get(place.names) else None for name, place in NAMES.items()}
    return PartGraph(
        part,
        data.x[own],
        data.node_id[own] if "node_id" in data else own,
        local[columns[:, held]],
        None if data.edge_attr is None else data.edge_attr[held],
        None if data.y is None else data.y[own],
        **names,
    )


NAMES = {"feature_names": NODES, "edge_names": EDGES}


def part_batch(batch: GraphBatch, part: Part) -> GraphBatch:
    """A batch of own nodes and ghosts, made ready for the networks: with the features of ghosts, and the halo.

    All processes call it together, and networks that are called with it as well.

    Args:
        batch: of a part's `to_data`, its features treated; those of ghosts are not read.
        part: the part.
    """
    assert torch.equal(batch.topology.edge_index.cpu(), part.edge_index)  # both list edges in the order of the graph
    own = batch.x[: part.num_own]
    nonzeros, entries = total(torch.stack([own.count_nonzero().cpu(), torch.tensor(own.numel())]), part.halo.group)
    found = replace(batch, x=part.halo.exchange(batch.x.clone()), halo=part.halo)
    agree_on_sparsity(found, int(nonzeros), int(entries))
    return found
