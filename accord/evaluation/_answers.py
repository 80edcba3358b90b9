"""What the parts of a model say about graphs: labels and probabilities of each, next to the truth."""

from dataclasses import dataclass

from torch import Tensor

from accord.graphs import Topology

NODE, EDGE = "gnn", "edge"  # names of the node network and of the edge network alone


@dataclass(frozen=True, eq=False)
class Answers:
    """Labels and probabilities of each part of a model, for graphs side by side."""

    topology: Topology
    truth: Tensor | None  # [tasks, nodes], -1 where unknown
    labels: dict[str, Tensor]  # part -> [tasks, nodes]
    probabilities: dict[str, Tensor]  # part -> [tasks, nodes, states]
    joint: str | None = None  # the part that stands for the whole model; None where that is the node network
