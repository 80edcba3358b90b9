"""What is learned: networks, their losses on training graphs and their scores on validation graphs."""

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
from accord.learning.objectives._parts import (
    EDGE_KEY,
    EdgePart,
    FieldNetworks,
    NodePart,
    SeparateNetworks,
    SharedNetworks,
    SharedPart,
)
from accord.learning.objectives._proxy import EdgeObjective, NodeObjective, ProxyObjective
from accord.learning.objectives._pseudolikelihood import conditional_scores, counted_nodes, pseudolikelihood
from accord.learning.objectives._ranking import rank
from accord.learning.objectives._triangles import (
    TRIANGLE_KEY,
    TriangleNetworks,
    TriangleObjective,
    TrianglePart,
    triangle_loss,
    triple_numbers,
)

__all__ = [
    "EDGE_KEY",
    "TRIANGLE_KEY",
    "EdgeObjective",
    "EdgePart",
    "FieldLoss",
    "FieldNetworks",
    "FieldObjective",
    "GameOptions",
    "InferenceObjective",
    "LabelObjective",
    "LabelPart",
    "NodeObjective",
    "NodePart",
    "ProxyObjective",
    "SeparateNetworks",
    "SharedNetworks",
    "SharedPart",
    "TriangleNetworks",
    "TriangleObjective",
    "TrianglePart",
    "conditional_scores",
    "consistency_penalty",
    "counted_nodes",
    "edge_loss",
    "game_loss",
    "maximin_objective",
    "node_loss",
    "pseudolikelihood",
    "pseudolikelihood_loss",
    "rank",
    "raw_field",
    "triangle_loss",
    "triple_numbers",
]
