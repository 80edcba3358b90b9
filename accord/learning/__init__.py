"""Learning: the proxy problem, the training loop, and the choice of a combination on validation data."""

from accord.learning._adam import ReplicaAdam
from accord.learning._allocation import kept_memory
from accord.learning._checkpoint import Saved, read_checkpoint, write_checkpoint
from accord.learning._chosen import Chosen
from accord.learning._chunks import Job, train_in_chunks
from accord.learning._field_objective import (
    FieldLoss,
    FieldObjective,
    game_loss,
    pseudolikelihood_loss,
    raw_field,
)
from accord.learning._hold_out import hold_out
from accord.learning._label_network import InferenceObjective, LabelObjective, LabelPart
from accord.learning._likelihood import fit_combination
from accord.learning._loop import Report, Row, Trainer
from accord.learning._maximin import GameOptions, maximin_objective
from accord.learning._objective import consistency_penalty, edge_loss, node_loss
from accord.learning._options import PartOptions, RefinementOptions, TrainingOptions
from accord.learning._parts import EDGE_KEY, EdgePart, NodePart, SharedPart, network_logits
from accord.learning._proxy import NodeObjective, ProxyObjective
from accord.learning._pseudolikelihood import conditional_scores, counted_nodes, pseudolikelihood
from accord.learning._ranking import rank
from accord.learning._replicas import Replicas, learned
from accord.learning._selection import CombinationGrid, choose_combination
from accord.learning._snapshots import Snapshots
from accord.learning._torch_settings import determinism
from accord.learning._update import Objective

__all__ = [
    "EDGE_KEY",
    "Chosen",
    "CombinationGrid",
    "EdgePart",
    "FieldLoss",
    "FieldObjective",
    "GameOptions",
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
    "Row",
    "Saved",
    "SharedPart",
    "Snapshots",
    "Trainer",
    "TrainingOptions",
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
