"""The maximin game: raise the score of the true labels, lower that of what the field itself believes (Eq. 3 and 9).

The gradient of log p(y*) with respect to the potentials is the true labels minus the field's marginals, so a step needs
beliefs but no gradient through them: they are computed apart and held fixed.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference import Beliefs, ExactBeliefs, eliminate_beliefs, propagate


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
