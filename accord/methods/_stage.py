"""A stage of training: one run of the loop, whose epochs are counted on from the stages before it."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch_geometric.data import Data

from accord.learning import Job, Objective, Replicas, Report, Row, TrainingOptions, train_in_chunks


def train_stage(
    history: list[Row],
    objective: Objective,
    replicas: Replicas,
    options: TrainingOptions,
    train: Sequence[Data],
    validation: Sequence[Data],
    folder: Path | None = None,
    report: Report | None = None,
    trained: bool = False,
) -> torch.device:
    """Train the parts of an objective, and add the course of it to the history of the stages before.

    Args:
        history: of the stages before, in place.
        objective: what is to be learned.
        replicas: seeds and tasks.
        options: how to train.
        train: training graphs.
        validation: graphs to choose by.
        folder: where to keep a checkpoint; each stage needs its own.
        report: called with a row of numbers at every look at validation data.
        trained: whether the parts come trained, so that this stage must beat what they are.

    Returns:
        Where the parts are now.
    """
    done = history[-1]["epoch"] if history else 0

    def shifted(row: Row) -> Row:
        """A row as it is told: what a stage starts from is told together with what the last one ended with."""
        before = history[-1] if history and row["epoch"] == 0 else {}
        return {**before, **row, "epoch": row["epoch"] + done}

    def follow(row: Row) -> None:
        if report is not None:
            report(shifted(row))

    rows, device = train_in_chunks(Job(objective, replicas, options, train, validation, folder, follow, trained))
    history[-1:] = [shifted(row) for row in rows]  # the first of them holds what it replaces
    return device
