"""How networks are trained: options, replicas, the loop, its checkpoints and its memory."""

from accord.learning.training._adam import ReplicaAdam
from accord.learning.training._checkpoint import Saved, check_tensors, read_checkpoint, write_checkpoint
from accord.learning.training._chunks import Job, Trained, train_in_chunks
from accord.learning.training._graphs import check_batches, hold_out
from accord.learning.training._loop import Trainer
from accord.learning.training._options import PartOptions, RefinementOptions, TrainingOptions
from accord.learning.training._replicas import Replicas, copy_of, learned, spread
from accord.learning.training._run import HistoryRow, Report, TrainingRun
from accord.learning.training._settings import determinism, kept_memory, product_precision, usual_torch
from accord.learning.training._update import Objective
from accord.learning.training._weights import StateWeights, count_labels
from accord.learning.training.processes import ALONE, Processes, Totals, join_processes

__all__ = [
    "ALONE",
    "HistoryRow",
    "Job",
    "Objective",
    "PartOptions",
    "Processes",
    "RefinementOptions",
    "ReplicaAdam",
    "Replicas",
    "Report",
    "Saved",
    "StateWeights",
    "Totals",
    "Trained",
    "Trainer",
    "TrainingOptions",
    "TrainingRun",
    "check_batches",
    "check_tensors",
    "copy_of",
    "count_labels",
    "determinism",
    "hold_out",
    "join_processes",
    "kept_memory",
    "learned",
    "product_precision",
    "read_checkpoint",
    "spread",
    "train_in_chunks",
    "usual_torch",
    "write_checkpoint",
]
