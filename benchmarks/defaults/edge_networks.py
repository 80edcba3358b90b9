"""Edge networks of `edge_attempts.py`: with a prior, with structure of edges, and trained on pairs within two hops."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import Data

from accord.encoders import Encoder, Noise, Scorer
from accord.graphs import GraphBatch, Topology, topology
from accord.learning import PartOptions
from accord.learning.objectives import edge_loss
from accord.learning.objectives._parts import edge_noise
from accord.learning.objectives._proxy import rank_pairs
from accord.learning.training import Objective

STRUCTURE = ("common neighbours", "Adamic-Adar", "sum of degrees", "difference of degrees", "cosine of features")


class Network(nn.Module):
    """An edge network whose graphs carry the number of each node in their last column.

    Args:
        encoder: of the nodes.
        scorer: of the edges.
        prior: [R, numbers, states], log-probabilities of each node; the scores of an edge start from their sum at both
            ends. None for no prior.
    """

    def __init__(self, encoder: Encoder, scorer: Scorer, prior: Tensor | None = None) -> None:
        super().__init__()
        self.encoder, self.scorer, self.prior = encoder, scorer, prior

    def forward(self, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Scores [R, edges, states, states]."""
        return self.score(batch, [without_numbers(batch)], noise)[0]

    def score(self, batch: GraphBatch, views: Sequence[GraphBatch], noise: Noise | None) -> list[Tensor]:
        """Scores of the edges of each view; nodes are encoded once, on the batch."""
        h = self.encoder(without_numbers(batch), noise)
        found = [self.scorer(h, view, noise) for view in views]
        if self.prior is None:
            return found
        nodes = self.prior[:, batch.x[:, -1].long()]
        ends = [(nodes[:, view.topology.edge_index[0]], nodes[:, view.topology.edge_index[1]]) for view in views]
        return [own + s[..., :, None] + t[..., None, :] for own, (s, t) in zip(found, ends, strict=True)]


class PairObjective(Objective):
    """Cross-entropy of pairs of labels at edges, and with a weight at pairs of nodes within two hops.

    Args:
        network: the edge network.
        options: of its updates.
        two_hops: weight of the further pairs.
        by_loss: parameters are kept by the loss of validation pairs; False keeps by accuracy, as the default does.
    """

    def __init__(self, network: Network, options: PartOptions, two_hops: float, by_loss: bool) -> None:
        self.network, self.two_hops, self.by_loss = network, two_hops, by_loss
        self.parts, self.options, self.identity = {"edge": network}, {"edge": options}, {}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Of the training edges."""
        views = [without_numbers(batch)]
        if self.two_hops:
            views.append(replace(views[0], topology=within_two_hops(batch.topology), edge_attr=None))
        tables = self.network.score(batch, views, edge_noise(noise))
        losses = [edge_loss(own, targets, view.topology) for own, view in zip(tables, views, strict=True)]
        return {"edge": losses[0] + self.two_hops * losses[1] if self.two_hops else losses[0]}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Of the validation edges alone."""
        tables = self.network(batch)
        if self.by_loss:
            return {"edge": -edge_loss(tables, targets, batch.topology)}
        return {"edge": rank_pairs(tables, targets, batch.topology)}


def without_numbers(batch: GraphBatch) -> GraphBatch:
    """The batch with features alone; the numbers of nodes are in the last column of `x`."""
    return batch.cached(
        "without numbers", lambda: GraphBatch(batch.x[:, :-1], batch.topology, batch.y, batch.edge_attr)
    )


def within_two_hops(edges: Topology) -> Topology:
    """Pairs of nodes with a common neighbour and no edge."""
    near = torch.zeros(edges.num_nodes, edges.num_nodes)
    near[edges.edge_index[0], edges.edge_index[1]] = 1.0
    near = near + near.t()
    pairs = ((near @ near > 0) & (near == 0)).triu(1).nonzero().t()
    return topology(pairs, edges.num_nodes, edges.graph, edges.num_graphs)


def structure_of(graph: Data) -> Tensor:
    """The columns of STRUCTURE for each column of the edge index."""
    source, target = graph.edge_index
    near = torch.zeros(graph.num_nodes, graph.num_nodes)
    near[source, target] = near[target, source] = 1.0
    near.fill_diagonal_(0.0)
    degree = near.sum(1)
    rare = 1 / degree.clamp_min(2).log()
    both = near[source] * near[target]
    unit = functional.normalize(graph.x.float(), dim=-1)
    ends = degree[source].log1p(), degree[target].log1p()
    columns = [both.sum(1).log1p(), both @ rare, ends[0] + ends[1], (ends[0] - ends[1]).abs()]
    return torch.stack([*columns, (unit[source] * unit[target]).sum(-1)], 1)


def numbered(splits: dict[str, list[Data]]) -> dict[str, list[Data]]:
    """The graphs with a number for each node as the last feature, and standardised structure as edge attributes."""
    columns = torch.cat([structure_of(graph) for graph in splits["train"]])
    centre, scale = columns.mean(0), columns.std(0).clamp_min(1e-6)
    found: dict[str, list[Data]] = {}
    first = 0
    for name, graphs in splits.items():
        found[name] = []
        for graph in graphs:
            own, numbers = graph.clone(), torch.arange(first, first + graph.num_nodes)
            own.edge_attr = (structure_of(graph) - centre) / scale
            own.x = torch.cat([graph.x.float(), numbers[:, None].float()], 1)
            found[name].append(own)
            first += graph.num_nodes
    return found
