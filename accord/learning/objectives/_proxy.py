"""The proxy problem (Eq. 9) as an objective: node and edge network trained apart, by plain cross-entropy."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from accord.encoders import Noise
from accord.evaluation import check_level, edge_accuracy, graph_edge_accuracy
from accord.graphs import GraphBatch, Topology
from accord.learning.objectives._fused_edge_loss import network_edge_loss
from accord.learning.objectives._losses import consistency_penalty, edge_loss, node_loss
from accord.learning.objectives._parts import EdgePart, FieldNetworks, edge_noise
from accord.learning.objectives._ranking import TIE, rank_logits, within_bounds
from accord.learning.training import Objective, PartOptions


class NodeObjective(Objective):
    """The node network alone: what a GNN without a field learns."""

    separable = True

    def __init__(self, node: nn.Module, options: PartOptions, level: str) -> None:
        check_level(level)
        self.parts, self.options, self.level = {"node": node}, {"node": options}, level
        self.identity = {"level": level}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes."""
        logits, smoothing = self.parts["node"](batch, noise), self.options["node"].label_smoothing
        return {"node": node_loss(logits, targets, smoothing, self.node_weights, self.totals)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy at the level asked for."""
        return {"node": rank_logits(self.parts["node"](batch), targets, batch.topology, self.level)}

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "NodeObjective":
        """The same objective of another node network."""
        return type(self)(parts["node"], self.options["node"], self.level)


class EdgeObjective(Objective):
    """The edge network alone. Without the penalty, it learns here what it learns beside a node network."""

    separable = True

    def __init__(self, edge: EdgePart, options: PartOptions) -> None:
        self.edge = edge
        self.parts, self.options, self.identity = {"edge": edge}, {"edge": options}, {}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at edges with both ends labelled."""
        smoothing = self.options["edge"].label_smoothing
        return {"edge": network_edge_loss(self.edge, batch, targets, edge_noise(noise), smoothing, totals=self.totals)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy on pairs of states."""
        return {"edge": rank_pairs(self.edge(batch), targets, batch.topology)}

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "EdgeObjective":
        """The same objective of another edge network."""
        edge = parts["edge"]
        assert isinstance(edge, EdgePart)
        return type(self)(edge, self.options["edge"])


class ProxyObjective(Objective):
    """Eq. 10, and with `consistency` > 0 the penalty of the paper's appendix on top.

    Args:
        networks: node and edge network, or one for both.
        options: how each part of them is updated.
        level: what the node network is kept by.
        consistency: weight of the penalty.
        edge_level: what the edge network is kept by, "edge" or "graph".
    """

    separable = True

    def __init__(
        self,
        networks: FieldNetworks,
        options: Mapping[str, PartOptions],
        level: str,
        consistency: float = 0.0,
        edge_level: str = "edge",
    ) -> None:
        check_level(level)
        self.networks, self.parts, self.options = networks, networks.parts, options
        self.level, self.consistency, self.edge_level = level, consistency, edge_level
        self.identity = {"level": level, "consistency": consistency}
        if edge_level != "edge":
            self.identity["edge_level"] = edge_level

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes and at edges with both ends labelled."""
        node_smoothing, edge_smoothing = self.networks.label_smoothing(self.options)
        if self.networks.edge is not None and not self.consistency:  # nothing else needs the scores of every edge
            node = self.networks.node_logits(batch, noise)
            return {
                "node": node_loss(node, targets, node_smoothing, self.node_weights, self.totals),
                "edge": network_edge_loss(
                    self.networks.edge,
                    batch,
                    targets,
                    edge_noise(noise),
                    edge_smoothing,
                    self.edge_weights,
                    self.totals,
                ),
            }
        node, edge = self.networks.logits(batch, noise)
        losses = {
            "node": node_loss(node, targets, node_smoothing, self.node_weights, self.totals),
            "edge": edge_loss(edge, targets, batch.topology, edge_smoothing, self.edge_weights, self.totals),
        }
        if self.consistency:
            penalty = consistency_penalty(node, edge, batch.topology, self.totals)
            losses["consistency"] = self.consistency * penalty
        return losses

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of node predictions at the level asked for, and of edge predictions on pairs of states."""
        node, edge = self.networks.logits(batch)
        score = rank_logits(node, targets, batch.topology, self.level)
        return self.networks.part_scores(score, rank_pairs(edge, targets, batch.topology, self.edge_level))

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "ProxyObjective":
        """The same objective of other networks."""
        return type(self)(self.networks.with_parts(parts), self.options, self.level, self.consistency, self.edge_level)


def rank_pairs(logits: Tensor, targets: Tensor, topology: Topology, level: str = "edge") -> Tensor:
    """Accuracy of logits [R, edges, states, states] on pairs of states [R]; diverged networks rank lowest.

    At level "graph" it is the share of graphs with every pair right; among equals, the share of pairs decides.
    """
    score = edge_accuracy(logits, targets, topology)
    if level == "graph":
        score = graph_edge_accuracy(logits, targets, topology) + TIE * score
    return torch.where(within_bounds(logits), score, -torch.inf)
