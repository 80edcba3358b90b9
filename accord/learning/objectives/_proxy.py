"""The proxy problem as an objective: node network and edge network trained apart, by plain cross-entropy."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from accord.encoders import Noise
from accord.evaluation import edge_accuracy, metric_for
from accord.graphs import GraphBatch
from accord.learning.objectives._fused_edge_loss import network_edge_loss
from accord.learning.objectives._losses import consistency_penalty, edge_loss, node_loss
from accord.learning.objectives._parts import EdgePart, edge_noise, network_logits
from accord.learning.objectives._ranking import rank_logits, within_bounds
from accord.learning.training._options import PartOptions


class NodeObjective:
    """The node network alone: what a GNN without a field learns."""

    def __init__(self, node: nn.Module, options: PartOptions, level: str) -> None:
        self.parts: dict[str, nn.Module] = {"node": node}
        self.options: Mapping[str, PartOptions] = {"node": options}
        metric_for(level)  # says which levels there are
        self.level = level
        self.identity: Mapping[str, Any] = {"level": level}

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes."""
        return {"node": node_loss(self.parts["node"](batch, noise), targets, self.options["node"].label_smoothing)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy at the level asked for."""
        return {"node": rank_logits(self.parts["node"](batch), targets, batch.topology, self.level)}


class ProxyObjective:
    """Eq. 8, and with `consistency` > 0 the penalty of the paper's appendix on top.

    Args:
        parts: networks called "node" and "edge", or one called "shared" that gives the logits of both.
        options: how each network is updated.
        level: what the node network is kept by.
        consistency: weight of the penalty.
    """

    def __init__(
        self, parts: dict[str, nn.Module], options: Mapping[str, PartOptions], level: str, consistency: float = 0.0
    ) -> None:
        self.parts, self.options = parts, options
        metric_for(level)  # says which levels there are
        self.level = level
        self.identity: Mapping[str, Any] = {"level": level, "consistency": consistency}
        self.consistency = consistency

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes and at edges with both ends labelled."""
        smoothing = [
            self.options[name if name in self.options else "shared"].label_smoothing for name in ("node", "edge")
        ]
        network = self.parts.get("edge")
        if isinstance(network, EdgePart) and not self.consistency:  # nobody else asks for the scores of every edge
            return {
                "node": node_loss(self.parts["node"](batch, noise), targets, smoothing[0]),
                "edge": network_edge_loss(network, batch, targets, edge_noise(noise), smoothing[1]),
            }
        node, edge = network_logits(self.parts, batch, noise)
        losses = {
            "node": node_loss(node, targets, smoothing[0]),
            "edge": edge_loss(edge, targets, batch.topology, smoothing[1]),
        }
        if self.consistency:
            losses["consistency"] = self.consistency * consistency_penalty(node, edge, batch.topology)
        return losses

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of the node network at the level asked for, of the edge network on pairs; if shared, the mean."""
        node, edge = network_logits(self.parts, batch)
        score = rank_logits(node, targets, batch.topology, self.level)
        pairs = torch.where(within_bounds(edge), edge_accuracy(edge, targets, batch.topology), -torch.inf)
        if "shared" not in self.parts:
            return {"node": score, "edge": pairs}
        return {"shared": torch.stack([score.double(), pairs.double()]).nanmean(0)}  # no labelled edge: nodes alone
