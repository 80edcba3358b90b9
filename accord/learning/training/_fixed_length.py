"""Training for a fixed number of epochs, without validation data: what is left when every choice has been made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from accord.graphs import GraphBatch
from accord.learning.training._loop import Trainer, _mean
from accord.learning.training._options import TrainingOptions
from accord.learning.training._replicas import Replicas
from accord.learning.training._run import HistoryRow
from accord.learning.training._update import Objective


class FixedLengthTrainer(Trainer):
    """Minimises an objective and takes the parameters of each part of each replica after its own number of epochs.

    Validation graphs are not read. A replica that diverges before a part is finished keeps that part's first
    parameters; `kept` is -1 there.

    Args:
        objective: what is to be learned.
        replicas: seeds and tasks.
        options: how to train; the number of epochs comes from `lengths`.
        lengths: [R] for each part, epochs.
    """

    def __init__(
        self, objective: Objective, replicas: Replicas, options: TrainingOptions, lengths: Mapping[str, Tensor]
    ) -> None:
        self.lengths = {name: own.cpu() for name, own in lengths.items()}
        self.longest = torch.stack(list(self.lengths.values())).amax(0)  # of each replica
        self.ends = {int(length) for own in self.lengths.values() for length in own}
        super().__init__(objective, replicas, replace(options, max_epochs=max(self.ends), patience=None))

    def _is_due(self) -> bool:
        return super()._is_due() or self.epoch in self.ends

    def _running(self) -> Tensor:
        return (self.longest > self.epoch) & (self.diverged < 0)

    @torch.no_grad()
    def _evaluate(self, held_out: GraphBatch, losses: Mapping[str, Tensor] | None = None) -> None:
        """Take the parameters of parts that have been trained long enough, and call the report callback."""
        healthy = self.diverged[self.present] < 0
        for name, part in self.objective.parts.items():
            ending = (self.lengths[name][self.present] == self.epoch) & healthy
            if bool(ending.any()):
                self.snapshots[name].update(part, torch.zeros(len(ending)), self.epoch, ending, self.present)
        row: HistoryRow = {"epoch": self.epoch}
        row |= {f"{name}_loss": _mean(loss.cpu()[healthy]) for name, loss in (losses or {}).items()}
        self.history.append(row)
        if self.report is not None and self.processes.is_first:
            self.report(row)

    def _identity(self) -> dict[str, Any]:
        return super()._identity() | {"lengths": {name: own.tolist() for name, own in self.lengths.items()}}
