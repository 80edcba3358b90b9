"""A field trained as a whole: its potentials come from networks, its loss depends on all labels of a graph at once."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from accord.encoders import Noise
from accord.evaluation import check_level, needs_probabilities
from accord.field import PairwiseField
from accord.graphs import GraphBatch, Topology
from accord.inference import propagate
from accord.inference.chains import path_likelihood
from accord.learning.objectives._maximin import GameOptions, maximin_objective
from accord.learning.objectives._parts import FieldNetworks
from accord.learning.objectives._pseudolikelihood import pseudolikelihood
from accord.learning.objectives._ranking import rank, within_bounds
from accord.learning.training import Objective, PartOptions

FieldOf = Callable[[Tensor, Tensor, Topology], PairwiseField]  # logits of nodes and edges -> their field
FieldLoss = Callable[[PairwiseField, Tensor], Tensor]  # field and labels [R, nodes] -> loss [R]
Decode = Callable[[PairwiseField], Tensor]  # field -> labels [R, nodes]
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

    def loss(field: PairwiseField, targets: Tensor) -> Tensor:
        exact = path_likelihood(field, targets) if options.exact else None
        if exact is not None:
            return -exact.sum(-1) / (targets >= 0).sum(-1).clamp_min(1)
        objective, likelihood = maximin_objective(field, targets, options)
        # The gradient comes from the game's objective, the reported value is the likelihood.
        reported = (objective - objective.detach() + likelihood.detach()).sum(-1)
        return -reported / (targets >= 0).sum(-1).clamp_min(1)

    return loss


def pseudolikelihood_loss(field: PairwiseField, targets: Tensor) -> Tensor:
    """The negative pseudolikelihood, averaged over the nodes that count."""
    logs, counts = pseudolikelihood(field, targets)
    return -(logs * counts).sum(-1) / counts.sum(-1).clamp_min(1)


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
        return {"field": torch.where(usable, self.loss(field, targets), torch.nan)}

    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Accuracy of joint labels; the networks have one score, since they are used together."""
        field, usable = self._field(batch)
        logs = propagate(field, damping=DAMPING, max_sweeps=SWEEPS).node if needs_probabilities(self.level) else None
        score = rank(self.decode(field), targets, batch.topology, self.level, logs)
        return {"field": torch.where(usable, score, -torch.inf)}

    def _field(self, batch: GraphBatch, noise: Noise | None = None) -> tuple[PairwiseField, Tensor]:
        """The field, and which replicas [R] have usable potentials; those of the others are set to 0."""
        node, edge = (at_least_single(logits) for logits in self.networks.logits(batch, noise))
        usable = within_bounds(node) & within_bounds(_stored(edge))
        if not bool(usable.all()):  # a table that all edges share stays one, which chains make use of
            node, edge = (torch.where(usable.view(-1, *(1,) * (x.dim() - 1)), x, 0.0) for x in (node, edge))
        return self.field_of(node, edge, batch.topology), usable


def _stored(edge: Tensor) -> Tensor:
    """Tables [R, edges, states, states] without repeats of one that all edges share (an expanded view)."""
    return edge[:, :1] if edge.stride(1) == 0 else edge


def at_least_single(values: Tensor) -> Tensor:
    """Values in single precision at least: fields are not solved in half precision."""
    return values.float() if values.dtype in (torch.bfloat16, torch.float16) else values
