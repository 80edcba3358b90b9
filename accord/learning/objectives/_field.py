"""A field trained as a whole: its potentials come from networks, its loss depends on all labels of a graph at once."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from accord.encoders import Noise
from accord.evaluation import check_level, needs_probabilities
from accord.field import PairwiseField
from accord.graphs import GraphBatch, Topology
from accord.inference.chains import path_likelihood
from accord.inference.triangles import AnyField
from accord.learning.objectives._losses import at_least_single
from accord.learning.objectives._maximin import GameOptions, field_beliefs, maximin_objective
from accord.learning.objectives._parts import FieldNetworks
from accord.learning.objectives._pseudolikelihood import pseudolikelihood
from accord.learning.objectives._ranking import rank, within_bounds
from accord.learning.training import ALONE, Objective, PartOptions, Totals

FieldOf = Callable[..., AnyField]  # logits of nodes, edges and, if there are any, triangles; and a topology
FieldLoss = Callable[[Any, Tensor, Totals], Tensor]  # field, labels [R, nodes] and totals -> loss [R]
Decode = Callable[[Any], Tensor]  # field -> labels [R, nodes]
DAMPING, SWEEPS = 0.5, 20  # of the marginals that some levels judge


def raw_field(node: Tensor, edge: Tensor, topology: Topology) -> PairwiseField:
    """The field whose potentials are the networks' scores."""
    states = node.shape[-1]
    # The graphs are checked once: the checks sort edges and wait for the device.
    blank = topology.cached(("blank field", states), lambda: _blank_field(states, topology))
    return blank.with_potentials(node, edge)


def _blank_field(states: int, topology: Topology) -> PairwiseField:
    """A field of potentials 0, all views of one number."""
    zero = torch.zeros((), device=topology.edge_index.device)
    node, edge = zero.expand(topology.num_nodes, states), zero.expand(topology.num_edges, states, states)
    return PairwiseField(topology.edge_index, node, edge, topology.graph, topology.num_graphs)


def game_loss(options: GameOptions) -> FieldLoss:
    """The maximin game: the negative (Bethe) log-likelihood per labelled node, with the gradient of Eq. 11.

    With exact beliefs it is maximum likelihood; sequences are then solved as chains.
    """

    def loss(field: AnyField, targets: Tensor, totals: Totals = ALONE) -> Tensor:
        labelled = totals.of((targets >= 0).sum(-1)).clamp_min(1)
        exact = path_likelihood(field, targets) if options.exact and isinstance(field, PairwiseField) else None
        if exact is not None:
            return -exact.sum(-1) / labelled
        objective, likelihood = maximin_objective(field, targets, options)
        # The gradient comes from the game's objective, the reported value is the likelihood.
        reported = (objective - objective.detach() + likelihood.detach()).sum(-1)
        return -reported / labelled

    return loss


def pseudolikelihood_loss(field: PairwiseField, targets: Tensor, totals: Totals = ALONE) -> Tensor:
    """The negative pseudolikelihood, averaged over the nodes that count."""
    logs, counts = pseudolikelihood(field, targets)
    return -(logs * counts).sum(-1) / totals.of(counts.sum(-1)).clamp_min(1)


class FieldObjective(Objective):
    """Trains the networks of a field by a loss of the field; both are kept by the accuracy of its joint labels.

    Args:
        networks: node and edge network, or one for both.
        options: how each part of them is updated.
        level: what they are kept by.
        field_of: makes a field of their scores.
        loss: of the field.
        decode: labels the nodes of a field.
        identity: settings of field and loss that a checkpoint must agree in.
    """

    def __init__(
        self,
        networks: FieldNetworks,
        options: Mapping[str, PartOptions],
        level: str,
        field_of: FieldOf,
        loss: FieldLoss,
        decode: Decode,
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        check_level(level)
        self.networks, self.parts, self.options, self.level = networks, networks.parts, options, level
        self.identity = {"level": level, **(identity or {})}
        self.field_of, self.loss, self.decode = field_of, loss, decode

    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """The loss of the whole field; NaN for a replica whose scores are out of bounds."""
        field, usable = self._field(batch, noise)
        return {"field": torch.where(usable, self.loss(field, targets, self.totals), torch.nan)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of joint labels; the networks have one score, since they are used together."""
        field, usable = self._field(batch)
        logs = None
        if needs_probabilities(self.level):
            logs = field_beliefs(field, GameOptions(damping=DAMPING, max_sweeps=SWEEPS)).node
        score = rank(self.decode(field), targets, batch.topology, self.level, logs)
        return {"field": torch.where(usable, score, -torch.inf)}

    def _field(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[AnyField, Tensor]:
        """The field, and which replicas [R] have usable potentials; those of the others are set to 0."""
        scores = [at_least_single(logits) for logits in self.networks.field_logits(batch, noise)]
        usable = torch.stack([within_bounds(_stored(logits)) for logits in scores]).all(0)
        # A table that all edges share stays one, which chains make use of.
        scores = [torch.where(usable.view(-1, *(1,) * (x.dim() - 1)), _stored(x), 0.0).expand_as(x) for x in scores]
        return self.field_of(*scores, batch.topology), usable


def _stored(scores: Tensor) -> Tensor:
    """Scores [R, nodes, edges or triangles, ...] without repeats of one that all of them share (an expanded view)."""
    return scores[:, :1] if scores.stride(1) == 0 else scores
