"""Which graphs are trained on: validation data held out of them, and the batches of each epoch."""

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch_geometric.data import Data

from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch, GraphStream, cluster_nodes, has_labels
from accord.learning.training._options import TrainingOptions
from accord.learning.training.processes import Processes, share_of_batch

HELD_OUT_SHARE = 0.2
Batches = Callable[[int], Iterator[tuple[GraphBatch, bool]]]  # epoch -> batches, each with whether it is a fixed one


def hold_out(graphs: Sequence[Data], seed: int) -> tuple[list[Data], list[Data]]:
    """Split into training and validation: a fifth of the labelled graphs, or of a single one's labelled nodes.

    Graphs without labels stay among the training graphs.
    """
    generator = torch.Generator().manual_seed(seed)
    labelled = [number for number, graph in enumerate(graphs) if has_labels(graph)]
    if len(labelled) > 1:
        order = [labelled[i] for i in torch.randperm(len(labelled), generator=generator).tolist()]
        held_out = set(order[: max(1, math.floor(HELD_OUT_SHARE * len(labelled)))])
        parts = [graph for i, graph in enumerate(graphs) if i not in held_out], [graphs[i] for i in sorted(held_out)]
        return parts
    if not labelled:
        raise GraphError(
            "hold_out: the training graphs have no labels `y`. Set them; if there is a train_mask, it must select some."
        )
    graph = graphs[labelled[0]]
    others = [other for other in graphs if other is not graph]
    rows = graph.y if graph.y.dim() == 2 else graph.y[:, None]
    known = (rows >= 0).any(1).nonzero().flatten()
    if known.numel() < 2:
        raise GraphError("hold_out: a single training graph needs at least two labelled nodes. Give validation graphs.")
    order = known[torch.randperm(known.numel(), generator=generator)]
    held = torch.zeros(rows.shape[0], dtype=torch.bool)
    held[order[: max(1, math.floor(HELD_OUT_SHARE * known.numel()))]] = True
    train, validation = graph.clone(), graph.clone()
    # The same graph twice; each copy has only its own labels.
    train.y = graph.y.masked_fill(held if graph.y.dim() == 1 else held[:, None], -1)
    validation.y = graph.y.masked_fill(~held if graph.y.dim() == 1 else ~held[:, None], -1)
    return [train, *others], [validation]


def check_batches(train: Sequence[Data], options: TrainingOptions) -> None:
    """Refuse options that need all training graphs at once, where these are streamed."""
    if not isinstance(train, GraphStream):
        return
    remedy = "or give a list of graphs (leave out --stream)."
    if options.clusters is not None:
        raise OptionError(
            f"TrainingOptions: clusters={options.clusters} divides all training graphs together, but they are streamed "
            f"from disk. Set clusters=None and batch_graphs, {remedy}"
        )
    if options.batch_graphs is None or options.batch_graphs >= len(train):
        raise OptionError(
            f"TrainingOptions: batch_graphs={options.batch_graphs} takes all {len(train)} training graphs at once, but "
            "they are streamed from disk, batch by batch. Set batch_graphs to a smaller number (accord fit --set "
            f"training.batch_graphs=32), {remedy}"
        )


def training_batches(
    train: Sequence[Data],
    size: int | None,
    place: Callable[[GraphBatch], GraphBatch],
    processes: Processes | None = None,
    triangles: bool = False,
) -> Batches:
    """Batches of the training graphs by epoch.

    The order of the graphs depends on the epoch alone, and all replicas share it. Batches that are the same in every
    epoch (all graphs, or one at a time) are fixed: they are collated once, and keep what encoders derive from them,
    such as normalised adjacencies. Of a stream, the graphs of a batch are read when it is their turn; none is fixed.

    Args:
        train: the training graphs.
        size: graphs in a batch; None takes all.
        place: moves a fixed batch to the device.
        processes: that share each batch; the batches are the same for any number of them.
        triangles: whether triangles are scored.
    """
    streamed = isinstance(train, GraphStream)
    size = min(size or len(train), len(train))
    fixed = size in (1, len(train)) and not streamed
    shared = processes is not None and processes.count > 1
    work = [graph.num_nodes + graph.num_edges for graph in train] if shared else []

    def collate(places: list[int]) -> GraphBatch:
        if processes is None or not shared:
            return GraphBatch.collate([train[i] for i in places])
        return share_of_batch(train, places, work, processes, triangles)

    pieces = [[i] for i in range(len(train))] if size == 1 else [list(range(len(train)))]
    ready = [place(collate(piece)) for piece in pieces] if fixed else []

    def batches(epoch: int) -> Iterator[tuple[GraphBatch, bool]]:
        order = torch.randperm(len(train), generator=torch.Generator().manual_seed(epoch)).tolist()
        if fixed:
            return ((ready[index], True) for index in order if index < len(ready))
        cuts = range(0, len(order), size)
        return ((collate(order[cut : cut + size]), False) for cut in cuts)

    return batches


def cluster_batches(train: Sequence[Data], clusters: int, size: int) -> Batches:
    """Batches of clusters of the training nodes by epoch, for graphs that are too large for one update.

    Every update takes some clusters, drawn anew in each epoch, and the edges inside and between them (Cluster-GCN,
    Chiang et al. 2019). Other edges are left out, so nodes at a border see only some of their neighbours.

    Args:
        train: the training graphs.
        clusters: how many clusters all training nodes are divided into.
        size: clusters in a batch.
    """
    whole = GraphBatch.collate(train)
    source, target = whole.topology.edge_index
    cluster = cluster_nodes(whole.topology.edge_index, whole.num_nodes, clusters).to(source.device)
    count = int(cluster.max()) + 1 if len(cluster) else 1

    def batch_of(chosen: torch.Tensor) -> GraphBatch:
        inside = torch.isin(cluster, chosen.to(cluster.device))
        columns = (inside[source] & inside[target]).nonzero().flatten()
        place = inside.cumsum(0) - 1
        part = Data(x=whole.x[inside], edge_index=place[whole.topology.edge_index[:, columns]])
        part.y = None if whole.y is None else whole.y[inside]
        part.edge_attr = None if whole.edge_attr is None else whole.edge_attr[columns]
        return GraphBatch.collate([part])

    def batches(epoch: int) -> Iterator[tuple[GraphBatch, bool]]:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(epoch))
        return ((batch_of(chosen), False) for chosen in order.split(size))

    return batches
