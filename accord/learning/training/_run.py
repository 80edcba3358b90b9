"""What a training run is given: graphs to train on, graphs to select on, weights, a folder and a callback."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor
from torch_geometric.data import Data

from accord.learning.training._weights import StateWeights

HistoryRow = dict[str, float]  # epoch, losses and scores of one evaluation
Report = Callable[[HistoryRow], None]


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """Data, checkpoint folder and progress callback of a training run; where it starts, and what labels weigh.

    Args:
        train: labelled graphs to train on.
        validation: labelled graphs that decide which parameters are kept.
        folder: where checkpoints are written; None writes none.
        report: called with a row of numbers after every evaluation.
        weights: of training labels by state; None where all count the same.
        start: weights of the networks to go on from, as `FieldModel.tensors` gives them; None starts afresh.
    """

    train: Sequence[Data]
    validation: Sequence[Data]
    folder: Path | None = None
    report: Report | None = None
    weights: StateWeights | None = None
    start: Mapping[str, Tensor] | None = None

    def stage(self, name: str) -> "TrainingRun":
        """The same run with the checkpoint subfolder of one stage of training."""
        return self if self.folder is None else replace(self, folder=self.folder / name)
