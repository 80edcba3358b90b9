"""Learning: the proxy problem, the training loop, and the choice of a combination on validation data."""

from accord.learning.objectives._field import (
    FieldLoss,
    FieldObjective,
    game_loss,
    pseudolikelihood_loss,
    raw_field,
)
from accord.learning.objectives._gmnn import InferenceObjective, LabelObjective, LabelPart
from accord.learning.objectives._losses import consistency_penalty, edge_loss, node_loss
from accord.learning.objectives._maximin import GameOptions, maximin_objective
from accord.learning.objectives._parts import EDGE_KEY, EdgePart, NodePart, SharedPart, network_logits
from accord.learning.objectives._proxy import NodeObjective, ProxyObjective
from accord.learning.objectives._pseudolikelihood import conditional_scores, counted_nodes, pseudolikelihood
from accord.learning.objectives._ranking import rank
from accord.learning.selection._combination import Chosen
from accord.learning.selection._grid import CombinationGrid, choose_combination
from accord.learning.selection._likelihood import fit_combination
from accord.learning.training._adam import ReplicaAdam
from accord.learning.training._allocation import kept_memory
from accord.learning.training._checkpoint import Saved, read_checkpoint, write_checkpoint
from accord.learning.training._chunks import Job, train_in_chunks
from accord.learning.training._hold_out import hold_out
from accord.learning.training._loop import Trainer
from accord.learning.training._options import PartOptions, RefinementOptions, TrainingOptions
from accord.learning.training._replicas import Replicas, learned
from accord.learning.training._run import HistoryRow, Report, TrainingRun
from accord.learning.training._snapshots import Snapshots
from accord.learning.training._torch_settings import determinism
from accord.learning.training._update import Objective

__all__ = [
    "EDGE_KEY",
    "Chosen",
    "CombinationGrid",
    "EdgePart",
    "FieldLoss",
    "FieldObjective",
    "GameOptions",
    "HistoryRow",
    "InferenceObjective",
    "Job",
    "LabelObjective",
    "LabelPart",
    "NodeObjective",
    "NodePart",
    "Objective",
    "PartOptions",
    "ProxyObjective",
    "RefinementOptions",
    "ReplicaAdam",
    "Replicas",
    "Report",
    "Saved",
    "SharedPart",
    "Snapshots",
    "Trainer",
    "TrainingOptions",
    "TrainingRun",
    "choose_combination",
    "conditional_scores",
    "consistency_penalty",
    "counted_nodes",
    "determinism",
    "edge_loss",
    "fit_combination",
    "game_loss",
    "hold_out",
    "kept_memory",
    "learned",
    "maximin_objective",
    "network_logits",
    "node_loss",
    "pseudolikelihood",
    "pseudolikelihood_loss",
    "rank",
    "raw_field",
    "read_checkpoint",
    "train_in_chunks",
    "write_checkpoint",
]
