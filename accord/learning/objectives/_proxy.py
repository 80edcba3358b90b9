"""The proxy problem (Eq. 9) as an objective: node and edge network trained apart, by plain cross-entropy."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from accord.encoders import Noise
from accord.evaluation import check_level, edge_accuracy
from accord.graphs import GraphBatch
from accord.learning.objectives._fused_edge_loss import network_edge_loss
from accord.learning.objectives._losses import consistency_penalty, edge_loss, node_loss
from accord.learning.objectives._parts import FieldNetworks, edge_noise
from accord.learning.objectives._ranking import rank_logits, within_bounds
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
        return {"node": node_loss(self.parts["node"](batch, noise), targets, self.options["node"].label_smoothing)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy at the level asked for."""
        return {"node": rank_logits(self.parts["node"](batch), targets, batch.topology, self.level)}

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "NodeObjective":
        """The same objective of another node network."""
        return type(self)(parts["node"], self.options["node"], self.level)


class ProxyObjective(Objective):
    """Eq. 10, and with `consistency` > 0 the penalty of the paper's appendix on top.

    Args:
        networks: node and edge network, or one for both.
        options: how each part of them is updated.
        level: what the node network is kept by.
        consistency: weight of the penalty.
    """

    separable = True

    def __init__(
        self, networks: FieldNetworks, options: Mapping[str, PartOptions], level: str, consistency: float = 0.0
    ) -> None:
        check_level(level)
        self.networks, self.parts, self.options = networks, networks.parts, options
        self.level, self.consistency = level, consistency
        self.identity = {"level": level, "consistency": consistency}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes and at edges with both ends labelled."""
        node_smoothing, edge_smoothing = self.networks.label_smoothing(self.options)
        if self.networks.edge is not None and not self.consistency:  # nothing else needs the scores of every edge
            node = self.networks.node_logits(batch, noise)
            return {
                "node": node_loss(node, targets, node_smoothing),
                "edge": network_edge_loss(self.networks.edge, batch, targets, edge_noise(noise), edge_smoothing),
            }
        node, edge = self.networks.logits(batch, noise)
        losses = {
            "node": node_loss(node, targets, node_smoothing),
            "edge": edge_loss(edge, targets, batch.topology, edge_smoothing),
        }
        if self.consistency:
            losses["consistency"] = self.consistency * consistency_penalty(node, edge, batch.topology)
        return losses

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of node predictions at the level asked for, and of edge predictions on pairs of states."""
        node, edge = self.networks.logits(batch)
        score = rank_logits(node, targets, batch.topology, self.level)
        pairs = torch.where(within_bounds(edge), edge_accuracy(edge, targets, batch.topology), -torch.inf)
        return self.networks.part_scores(score, pairs)

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "ProxyObjective":
        """The same objective of other networks."""
        return type(self)(self.networks.with_parts(parts), self.options, self.level, self.consistency)
