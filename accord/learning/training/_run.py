"""What a training run is given: graphs to train on, graphs to select on, a folder and a callback."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torch_geometric.data import Data

HistoryRow = dict[str, float]  # epoch, losses and scores of one evaluation
Report = Callable[[HistoryRow], None]


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """Data, checkpoint folder and progress callback of a training run.

    Args:
        train: labelled graphs to train on.
        validation: labelled graphs that decide which parameters are kept.
        folder: where checkpoints are written; None writes none.
        report: called with a row of numbers after every evaluation.
    """

    train: Sequence[Data]
    validation: Sequence[Data]
    folder: Path | None = None
    report: Report | None = None

    def stage(self, name: str) -> "TrainingRun":
        """The same run with the checkpoint subfolder of one stage of training."""
        return self if self.folder is None else replace(self, folder=self.folder / name)
