"""The proxy problem as an objective: node network and edge network trained apart, by plain cross-entropy."""

from collections.abc import Mapping

from torch import Tensor, nn

from accord.encoders import Noise
from accord.evaluation import edge_accuracy, metric_for
from accord.graphs import GraphBatch
from accord.learning._objective import consistency_penalty, edge_loss, node_loss
from accord.learning._options import PartOptions

EDGE_KEY = 500_009  # the edge network's weights and dropout must not repeat the node network's


def edge_noise(noise: Noise) -> Noise:
    """Dropout of the edge network in the same step."""
    return Noise(noise.seeds + EDGE_KEY, noise.step)


class NodeObjective:
    """The node network alone: what a GNN without a field learns."""

    def __init__(self, node: nn.Module, options: PartOptions, level: str) -> None:
        self.parts: dict[str, nn.Module] = {"node": node}
        self.options: Mapping[str, PartOptions] = {"node": options}
        self.metric = metric_for(level)

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes."""
        return {"node": node_loss(self.parts["node"](batch, noise), targets, self.options["node"].label_smoothing)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy at the level asked for."""
        return {"node": self.metric(self.parts["node"](batch).argmax(-1), targets, batch.topology)}


class ProxyObjective:
    """Eq. 8, and with `consistency` > 0 the penalty of the paper's appendix on top."""

    def __init__(
        self,
        node: nn.Module,
        edge: nn.Module,
        options: Mapping[str, PartOptions],
        level: str,
        consistency: float = 0.0,
    ) -> None:
        self.parts: dict[str, nn.Module] = {"node": node, "edge": edge}
        self.options = options
        self.metric = metric_for(level)
        self.consistency = consistency

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Cross-entropy at labelled nodes and at edges with both ends labelled."""
        node, edge = self.parts["node"](batch, noise), self.parts["edge"](batch, edge_noise(noise))
        losses = {
            "node": node_loss(node, targets, self.options["node"].label_smoothing),
            "edge": edge_loss(edge, targets, batch.topology, self.options["edge"].label_smoothing),
        }
        if self.consistency:
            losses["consistency"] = self.consistency * consistency_penalty(node, edge, batch.topology)
        return losses

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of the node network at the level asked for; of the edge network, on pairs."""
        return {
            "node": self.metric(self.parts["node"](batch).argmax(-1), targets, batch.topology),
            "edge": edge_accuracy(self.parts["edge"](batch), targets, batch.topology),
        }
