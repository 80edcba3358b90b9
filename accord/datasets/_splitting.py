"""Inductive splits of one large graph: parts without common nodes, and no edge from one part to another."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, OptionError
from accord.graphs import EDGES, NODES, Columns, align, cluster_nodes, columns_of, ego_networks, graph_topology
from accord.graphs.features._columns import NUMBER, Place
from accord.graphs.structure._ego import SHARED_LISTS

PARTS = ("train", "val", "test")
WAYS = ("clusters", "random")
CLUSTERS = 50  # that the parts are put together from; fewer in a small graph
LEAST_CLUSTER = 10  # nodes


@dataclass(frozen=True, eq=False)
class GraphSplit:
    """Training, validation and test graphs of one graph, and what the division costs."""

    train: list[Data]
    val: list[Data]
    test: list[Data]
    num_edges: int  # undirected edges of the whole graph
    cut_edges: int  # of these, how many join two parts and are lost


def split_graph(
    graph: Data,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    seed: int = 0,
    way: str = "clusters",
    egos: int | None = None,
) -> GraphSplit:
    """Divide one graph into training, validation and test graphs that have no node in common.

    A part is the subgraph of its nodes: edges between parts are removed, so that nothing of a test node is seen in
    training. Masks of the graph are dropped; `node_id` numbers nodes as in the whole graph.

    Args:
        graph: the graph.
        shares: of the nodes in training, validation and test.
        seed: of the division.
        way: "clusters" puts whole neighbourhoods into a part, so that few edges are cut; "random" draws nodes one by
            one, so that the parts are alike, but most edges are cut.
        egos: give so many ego networks of training nodes (a node and its neighbours inside the part) in place of one
            training graph, and of validation and test nodes by their shares; None gives one graph for each part.
    """
    part = divide_nodes(graph, shares, seed, way)
    found: dict[str, list[Data]] = {}
    for number, name in enumerate(PARTS):
        inside = subgraph(graph, (part == number).nonzero().flatten(), name)
        found[name] = [inside] if egos is None else _egos(inside, round(egos * shares[number] / shares[0]), seed)
    edges = graph_topology(graph).edge_index.cpu()
    return GraphSplit(**found, num_edges=edges.shape[1], cut_edges=int((part[edges[0]] != part[edges[1]]).sum()))


def divide_nodes(graph: Data, shares: Sequence[float], seed: int, way: str) -> Tensor:
    """The part of each node [nodes]: 0 training, 1 validation, 2 test."""
    if way not in WAYS:
        raise OptionError(f"split_graph: way {way!r} is unknown. Choose one of {', '.join(WAYS)}.")
    if len(shares) != len(PARTS) or not all(0 < share < 1 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise OptionError(f"split_graph: shares are {tuple(shares)}. Give three positive numbers that sum to 1.")
    num_nodes = len(graph.x)
    if num_nodes < len(PARTS):
        raise GraphError(f"split_graph: the graph has {num_nodes} nodes. At least {len(PARTS)} are needed.")
    generator = torch.Generator().manual_seed(seed)
    if way == "random":
        part = torch.full((num_nodes,), 2)
        order = torch.randperm(num_nodes, generator=generator)
        first, second = (round(share * num_nodes) for share in (shares[0], shares[0] + shares[1]))
        part[order[:first]], part[order[first:second]] = 0, 1
        return part
    count = max(len(PARTS), min(CLUSTERS, num_nodes // LEAST_CLUSTER))
    cluster = cluster_nodes(graph_topology(graph).edge_index, num_nodes, count, seed)
    count = int(cluster.max()) + 1
    size = torch.bincount(cluster, minlength=count)
    room = torch.tensor([share * num_nodes for share in shares], dtype=torch.float64)
    owner = torch.empty(count, dtype=torch.long)
    # In random order, each cluster goes to the part that lacks the most nodes relative to its size.
    for number in torch.randperm(count, generator=generator).tolist():
        best = int((room / torch.tensor(shares, dtype=torch.float64)).argmax())
        owner[number] = best
        room[best] -= float(size[number])
    return owner[cluster]


def subgraph(graph: Data, nodes: Tensor, name: str) -> Data:
    """The nodes, ascending, with the edges among them; names go along, masks do not."""
    number = torch.full((len(graph.x),), -1)
    number[nodes] = torch.arange(len(nodes))
    ends = number[graph.edge_index]
    kept = (ends >= 0).all(0)
    part = Data(x=graph.x[nodes], edge_index=ends[:, kept])
    part.node_id = graph.node_id[nodes] if graph.get("node_id") is not None else nodes
    for key, chosen in (("y", nodes), ("edge_attr", kept)):
        if graph.get(key) is not None:
            part[key] = graph[key][chosen]
    for key in SHARED_LISTS:
        if graph.get(key) is not None:
            part[key] = graph[key]
    if graph.get("node_names") is not None:
        part.node_names = [graph.node_names[node] for node in nodes.tolist()]
    part.graph_name = name
    return without_empty(without_empty(part, NODES), EDGES)


def without_empty(graph: Data, place: Place) -> Data:
    """The graph without categories and marks that it has nowhere: they are unknown to a model trained on it."""
    columns = columns_of(graph, place, "split_graph")
    if columns is None or set(columns.kinds) == {NUMBER}:
        return graph
    occurs = (graph[place.values] != 0).any(0).tolist()
    kept = [n for n, (kind, found) in enumerate(zip(columns.kinds, occurs, strict=True)) if found or kind == NUMBER]
    smaller = Columns(tuple(columns.names[n] for n in kept), tuple(columns.kinds[n] for n in kept))
    return align(graph, smaller, place, "split_graph") if len(kept) < len(occurs) else graph


def _egos(inside: Data, count: int, seed: int) -> list[Data]:
    """Ego networks of nodes that have neighbours."""
    linked = inside.edge_index.flatten().unique()
    if count < 1 or count > len(linked):
        raise OptionError(
            f"split_graph: {count} ego networks are wanted in a part with {len(linked)} nodes that have neighbours. "
            f"Choose a number from 1 to {len(linked)} there."
        )
    chosen = linked[torch.randperm(len(linked), generator=torch.Generator().manual_seed(seed))[:count]]
    found = []
    for ego in ego_networks(inside, chosen.sort().values):
        ego.node_id = inside.node_id[ego.node_id]
        found.append(ego)
    return found
