"""The maximin game: raise the score of the true labels, lower the score expected under the field (Eq. 3 and 11).

The gradient of log p(y*) with respect to the potentials is the true labels minus the field's marginals. So a step needs
beliefs but no gradient through them: they are computed first and then held fixed.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.field import PairwiseField
from accord.field.triangles import TriangleField
from accord.inference import Beliefs, ExactBeliefs, eliminate_beliefs, propagate
from accord.inference.triangles import SolvedBeliefs, solve_triangles


@dataclass(frozen=True, kw_only=True)
class GameOptions:
    """How the field's beliefs are found in each step."""

    exact: bool = False  # by elimination: for trees and graphs of small treewidth only
    damping: float = 0.5
    max_sweeps: int = 20
    backend: str = "auto"  # of propagation, as of `accord.propagate`

    def __post_init__(self) -> None:
        if not isinstance(self.exact, bool):
            raise OptionError(f"GameOptions: exact is {self.exact!r}; True or False is needed.")
        if isinstance(self.damping, bool) or not isinstance(self.damping, (int, float)) or not 0 <= self.damping < 1:
            raise OptionError(f"GameOptions: damping is {self.damping!r}; a number from 0 to below 1 is needed.")
        if isinstance(self.max_sweeps, bool) or not isinstance(self.max_sweeps, int) or self.max_sweeps < 1:
            raise OptionError(f"GameOptions: max_sweeps is {self.max_sweeps!r}; a positive whole number is needed.")


def field_beliefs(field: PairwiseField | TriangleField, options: GameOptions) -> Beliefs | ExactBeliefs | SolvedBeliefs:
    """Sum-product marginals, without a gradient."""
    with torch.no_grad():
        if isinstance(field, TriangleField):  # exactly, where the graph is narrow
            return solve_triangles(field, "sum", options.damping, options.max_sweeps)
        if options.exact:
            return eliminate_beliefs(field, semiring="sum")
        return propagate(
            field,
            semiring="sum",
            damping=options.damping,
            max_sweeps=options.max_sweeps,
            backend=options.backend,
        )


def expected_score(field: PairwiseField | TriangleField, beliefs: Beliefs | ExactBeliefs | SolvedBeliefs) -> Tensor:
    """E_q[theta] for each replica and graph, by the marginals q; forbidden states have probability 0."""
    regions = [
        (field.node, beliefs.node, field.graph, 1),
        (field.edge, beliefs.edge, field.graph[field.edge_index[0]], 2),
    ]
    if isinstance(field, TriangleField):
        assert isinstance(beliefs, SolvedBeliefs) and beliefs.triangle is not None
        regions.append((field.triangle, beliefs.triangle, field.graph[field.triangles.corner[:, 0]], 3))
    total = field.node.new_zeros(*field.replicas, field.num_graphs)
    for potential, logs, graph, inner in regions:
        probability = logs.exp()
        expected = probability * potential.masked_fill(probability == 0, 0.0)
        total = total.index_add(-1, graph, expected.sum(tuple(range(-inner, 0))))
    return total


def maximin_objective(
    field: PairwiseField | TriangleField, targets: Tensor, options: GameOptions
) -> tuple[Tensor, Tensor]:
    """The game's objective (Eq. 11), whose gradient is that of the likelihood, and the likelihood itself.

    Missing labels are summed out: the positive term is then the expectation given the known labels.

    Returns:
        Objective and (Bethe or Kikuchi) log-likelihood, both [*replicas, graphs].
    """
    negative = field_beliefs(field, options)
    lowered = expected_score(field, negative)
    targets = targets.expand(*field.replicas, -1)
    if bool((targets >= 0).all()):
        raised = field.score(targets)  # with all labels known, the expectation is the score of one labelling
        return raised - lowered, raised.detach() - negative.log_partition
    clamped = field.clamp(targets)
    assert isinstance(clamped, (PairwiseField, TriangleField))
    positive = field_beliefs(clamped, options)
    return expected_score(field, positive) - lowered, positive.log_partition - negative.log_partition
