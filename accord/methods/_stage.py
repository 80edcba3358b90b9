"""A stage of training: one run of the loop, whose epochs are numbered after those of the stages before."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from accord.learning import HistoryRow, Replicas, TrainingOptions, TrainingRun
from accord.learning.training import Job, Objective, train_in_chunks


def train_stage(
    history: list[HistoryRow],
    objective: Objective,
    replicas: Replicas,
    options: TrainingOptions,
    run: TrainingRun,
    trained: bool = False,
    kept: dict[str, Tensor] | None = None,
    lengths: Mapping[str, Tensor] | None = None,
) -> torch.device:
    """Train the parts of an objective, and append its history to that of the stages before.

    Args:
        history: of the stages before; extended in place.
        objective: what is to be learned.
        replicas: seeds and tasks.
        options: how to train.
        run: graphs, checkpoint folder (each stage needs its own) and callback.
        trained: whether the parts are trained already; this stage then must improve on them.
        kept: receives, for each part, the epoch of this stage whose parameters were kept [R].
        lengths: [R] for each part, the epochs after which its parameters are taken; None selects by validation data.

    Returns:
        The device of the parts.
    """
    done = history[-1]["epoch"] if history else 0

    def shifted(row: HistoryRow) -> HistoryRow:
        """A row with epochs of all stages; a stage's first row also holds the last row of the stage before."""
        before = history[-1] if history and row["epoch"] == 0 else {}
        return {**before, **row, "epoch": row["epoch"] + done}

    def follow(row: HistoryRow) -> None:
        if run.report is not None:
            run.report(shifted(row))

    result = train_in_chunks(Job(objective, replicas, options, replace(run, report=follow), trained, lengths))
    history[-1:] = [shifted(row) for row in result.history]  # the first row includes the one that it replaces
    if kept is not None:
        kept |= result.kept
    return result.device
