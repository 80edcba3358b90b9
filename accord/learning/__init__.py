"""Learning: the proxy problem, the training loop, and the choice of a combination on validation data."""

from accord.learning._adam import ReplicaAdam
from accord.learning._checkpoint import Saved, read_checkpoint, write_checkpoint
from accord.learning._chosen import Chosen
from accord.learning._hold_out import hold_out
from accord.learning._likelihood import fit_combination
from accord.learning._loop import Objective, Report, Row, Trainer
from accord.learning._maximin import GameOptions, maximin_objective
from accord.learning._objective import consistency_penalty, edge_loss, node_loss
from accord.learning._options import PartOptions, TrainingOptions
from accord.learning._parts import EdgePart, NodePart, SharedPart
from accord.learning._proxy import EDGE_KEY, NodeObjective, ProxyObjective
from accord.learning._ranking import rank
from accord.learning._replicas import Replicas, learned
from accord.learning._selection import CombinationGrid, choose_combination
from accord.learning._snapshots import Snapshots

__all__ = [
    "EDGE_KEY",
    "Chosen",
    "CombinationGrid",
    "EdgePart",
    "GameOptions",
    "NodeObjective",
    "NodePart",
    "Objective",
    "PartOptions",
    "ProxyObjective",
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
    "consistency_penalty",
    "edge_loss",
    "fit_combination",
    "hold_out",
    "learned",
    "maximin_objective",
    "node_loss",
    "rank",
    "read_checkpoint",
    "write_checkpoint",
]
