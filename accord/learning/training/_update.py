"""One update: losses, gradients, clipping and a step of every optimiser, without waiting for the device."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn

from accord.encoders import Noise
from accord.graphs import GraphBatch
from accord.learning.training._adam import ReplicaAdam
from accord.learning.training._divergence import halt_gradients
from accord.learning.training._options import PartOptions
from accord.learning.training._replicas import is_stacked, owner, spread
from accord.learning.training._weights import StateWeights
from accord.learning.training.processes import ALONE, SharedTotals, Totals, add_up, processes_of


class Objective(ABC):
    """What is to be learned: parts with parameters, their losses, and how good they are on validation data."""

    parts: dict[str, nn.Module]
    options: Mapping[str, PartOptions]
    identity: Mapping[str, Any]  # what a checkpoint must agree in, besides the parts and their options
    # Whether a replica's losses and scores depend on its own parameters alone, and never wait for the device: then
    # replicas can be trained apart or leave the batch, and updates can be recorded and replayed.
    separable: bool = False
    fixed: Mapping[str, nn.Module] = {}  # networks that losses and scores use, but that are not trained
    weights: StateWeights | None = None  # of the labels of the replicas in the batch; set by the trainer
    totals: Totals = ALONE  # counts of the whole batch that losses are divided by; set for every update

    @property
    def node_weights(self) -> Tensor | None:
        """Weights of labels at nodes [R, states]; None for equal weights."""
        return None if self.weights is None else self.weights.node

    @property
    def edge_weights(self) -> Tensor | None:
        """Weights of pairs of labels at edges [R, states, states]; None for equal weights."""
        return None if self.weights is None else self.weights.edge

    @abstractmethod
    def losses(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """Loss of each part [R]; their sum over parts and replicas is minimised.

        A loss is a sum over the batch, divided by a count of the whole batch (`totals`), so that the losses of
        processes that share a batch add up.
        """

    @abstractmethod
    def scores(self, batch: GraphBatch, targets: Tensor) -> dict[str, Tensor]:
        """Score of each part [R], higher is better: it decides which parameters are kept.

        Parts that are judged together have one score, under another name.
        """

    def with_parts(self, parts: Mapping[str, nn.Module]) -> "Objective":
        """The same objective of other modules, such as copies that hold some of the replicas."""
        raise NotImplementedError(f"{type(self).__name__} is not separable: its parts cannot be replaced.")


def is_separable(objective: Objective) -> bool:
    """Whether an objective is separable and every parameter of its parts is stacked along a replica axis."""
    return objective.separable and is_stacked(objective.parts.values())


class Updater:
    """Makes updates of the parts of an objective.

    Args:
        objective: what is to be learned.
        fabric: device, precision and processes.
        clip_norm: largest norm of a replica's gradient of a part; None for any.
    """

    def __init__(self, objective: Objective, fabric: Fabric, clip_norm: float | None = None) -> None:
        self.objective, self.fabric, self.clip_norm = objective, fabric, clip_norm
        self.processes = processes_of(fabric)
        self.halted: Tensor | None = None  # [R], replicas that are no longer updated, on the device; None for none
        self.optimisers: dict[str, ReplicaAdam] = {}
        for name, part in objective.parts.items():
            own = objective.options[name]
            self.optimisers[name] = ReplicaAdam(part.parameters(), own.learning_rate, own.weight_decay)

    def set_rates(self, part: str, options: Sequence[PartOptions]) -> None:
        """Give each replica of a part its own learning rate and weight decay, from one entry of `options` each."""
        for group in self.optimisers[part].param_groups:
            for name, values in (
                ("lr", [own.learning_rate for own in options]),
                ("weight_decay", [own.weight_decay for own in options]),
            ):
                group[name] = torch.tensor(values, dtype=torch.float64, device=self.fabric.device)

    def __call__(self, batch: GraphBatch, targets: Tensor, noise: Noise) -> dict[str, Tensor]:
        """One step of every part; returns the losses [R] before it, of the whole batch where processes share it."""
        share = batch.share
        for optimiser in self.optimisers.values():
            optimiser.zero_grad()
        self.objective.totals = ALONE if share is None else SharedTotals(self.processes, not share.idle)
        with self.fabric.autocast():
            losses = self.objective.losses(batch, targets, noise)
        self.fabric.backward(torch.stack([loss.sum() for loss in losses.values()]).sum())
        losses = {name: loss.detach() for name, loss in losses.items()}
        if share is not None:
            everything = [own for part in self.objective.parts.values() for own in part.parameters()]
            losses = add_up(everything, losses, self.processes, share.idle)
        for name, optimiser in self.optimisers.items():
            self._finish_gradients(list(self.objective.parts[name].parameters()), noise.num_replicas)
            optimiser.step()
        return losses

    def _finish_gradients(self, parameters: list[nn.Parameter], num_replicas: int) -> None:
        """Clip gradients, and set those of halted replicas to zero."""
        if self.clip_norm is not None:
            clip_gradients(parameters, self.clip_norm, num_replicas)
        if self.halted is not None:
            halt_gradients(parameters, self.halted)


@torch.no_grad()
def clip_gradients(parameters: Sequence[nn.Parameter], largest: float, num_replicas: int) -> None:
    """Scale each replica's gradient down to norm `largest`, by that replica's norm alone."""
    given = [parameter for parameter in parameters if parameter.grad is not None]
    if not given:
        return
    square = torch.zeros(num_replicas, device=given[0].device)
    for parameter in given:
        assert parameter.grad is not None
        mine = owner(parameter)
        if mine is None:
            square += parameter.grad.flatten(1).square().sum(1)
        else:
            square[mine] += parameter.grad.square().sum()
    scale = (largest / square.sqrt().clamp_min(1e-12)).clamp_max(1.0)
    for parameter in given:
        assert parameter.grad is not None
        parameter.grad.mul_(spread(scale, parameter))
