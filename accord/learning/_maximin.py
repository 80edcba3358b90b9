"""The maximin game: raise the score of the true labels, lower that of what the field itself believes (Eq. 3 and 9).

The gradient of log p(y*) with respect to the potentials is the true labels minus the field's marginals, so a step needs
beliefs but no gradient through them: they are computed apart and held fixed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from accord.encoders import Noise
from accord.evaluation import metric_for
from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, ExactBeliefs, PropagationOptions, eliminate_beliefs, propagate
from accord.learning._options import PartOptions
from accord.learning._proxy import edge_noise
from accord.learning._selection import solve

Potentials = Callable[[Tensor, Tensor, GraphBatch], PairwiseField]


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """How the field's own beliefs are found in each step."""

    exact: bool = False  # by elimination: for trees and graphs of small treewidth
    damping: float = 0.5
    max_sweeps: int = 20


def field_beliefs(field: PairwiseField, options: GameOptions) -> Beliefs | ExactBeliefs:
    """Sum-product marginals, without a gradient."""
    with torch.no_grad():
        if options.exact:
            return eliminate_beliefs(field, semiring="sum")
        return propagate(field, semiring="sum", damping=options.damping, max_sweeps=options.max_sweeps)


def expected_score(field: PairwiseField, node: Tensor, edge: Tensor) -> Tensor:
    """E_q[theta] for each replica and graph, from marginals (probabilities); what is forbidden has no mass.

    Args:
        field: the potentials.
        node: [*replicas, nodes, states].
        edge: [*replicas, edges, states, states].
    """
    at_nodes = (node * field.node.masked_fill(node == 0, 0.0)).sum(-1)
    at_edges = (edge * field.edge.masked_fill(edge == 0, 0.0)).sum((-1, -2))
    total = at_nodes.new_zeros(*field.replicas, field.num_graphs)
    total = total.index_add(-1, field.graph, at_nodes)
    return total.index_add(-1, field.graph[field.edge_index[0]], at_edges)


def maximin_objective(field: PairwiseField, targets: Tensor, options: GameOptions) -> tuple[Tensor, Tensor]:
    """The game's objective (Eq. 9), whose gradient is that of the likelihood, and the likelihood itself.

    Missing labels are summed out: the positive side is then the expectation given the labels that are known.

    Returns:
        Objective and (Bethe) log-likelihood, both [*replicas, graphs].
    """
    known = field.clamp(targets.expand(*field.replicas, -1))
    negative, positive = field_beliefs(field, options), field_beliefs(known, options)
    gap = expected_score(field, positive.node.exp(), positive.edge.exp()) - expected_score(
        field, negative.node.exp(), negative.edge.exp()
    )
    return gap, positive.log_partition - negative.log_partition


class MaximinObjective:
    """Trains node and edge networks as the potentials of a field.

    Args:
        node: the node network.
        edge: the edge network.
        potentials: logits of both -> the field.
        options: how each part is updated.
        level: what to keep parameters by.
        game: how beliefs are found.
        propagation: how validation graphs are labelled.
    """

    def __init__(
        self,
        node: nn.Module,
        edge: nn.Module,
        potentials: Potentials,
        options: Mapping[str, PartOptions],
        level: str,
        game: GameOptions,
        propagation: PropagationOptions,
    ) -> None:
        self.parts: dict[str, nn.Module] = {"node": node, "edge": edge}
        self.potentials, self.options = potentials, options
        self.metric = metric_for(level)
        self.game, self.propagation = game, propagation

    def field(self, batch: GraphBatch, noise: Noise | None = None) -> PairwiseField:
        """The field that the networks stand for now."""
        node = self.parts["node"](batch, noise)
        edge = self.parts["edge"](batch, None if noise is None else edge_noise(noise))
        return self.potentials(node.float(), edge.float(), batch)

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Minus the objective, a node."""
        objective, _ = maximin_objective(self.field(batch, noise), targets, self.game)
        return {"game": -objective.sum(-1) / max(batch.topology.num_nodes, 1)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of joint labels; node and edge network are kept together."""
        score = self.metric(solve(self.field(batch), self.propagation), targets, batch.topology)
        return {"node": score, "edge": score}


def raw_scores(node: Tensor, edge: Tensor, batch: GraphBatch) -> PairwiseField:
    """A CRF's potentials: the networks' scores as they are."""
    topology = batch.topology
    return PairwiseField(topology.edge_index, node, edge, topology.graph, topology.num_graphs)
