"""What the parts of a model predict for graphs: labels and probabilities, beside the true labels."""

from dataclasses import dataclass

from torch import Tensor

from accord.graphs import Topology

NODE, EDGE = "gnn", "edge"  # parts of a model: the node network alone, the edge network alone


@dataclass(frozen=True, eq=False)
class Answers:
    """Labels and probabilities by each part of a model, for all graphs side by side.

    Parts are the node network alone (`NODE`), the edge network alone (`EDGE`) and the whole model, under the name of
    its method; a model has one to three of them.
    """

    topology: Topology
    truth: Tensor | None  # [tasks, nodes], -1 where unknown; None for graphs without labels
    labels: dict[str, Tensor]  # part -> [tasks, nodes]
    probabilities: dict[str, Tensor]  # part -> [tasks, nodes, states]
    joint: str | None = None  # the part that labels nodes jointly; None where the model is a node network alone
    residual: float | None = None  # last change of a log-message, if belief propagation did not converge

    @property
    def whole(self) -> str:
        """The part that is the whole model."""
        return NODE if self.joint is None else self.joint
