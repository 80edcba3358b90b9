"""What is doubtful about labels: disagreement, edges with unlikely pairs, entropy, convergence and calibration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.evaluation._calibration import expected_calibration_error
from accord.graphs import Topology
from accord.inference._blocks import blocks
from accord.inference.triangles import AnyBeliefs, AnyField

UNLIKELY = -math.log(2)  # lift of an edge whose labels occur together less than half as often as by chance


@dataclass(frozen=True)
class DiagnosisSummary:
    """Counts and means over all graphs and tasks; None where nothing can be counted."""

    nodes: int  # labels, of all tasks together
    disagreeing: int  # labels that differ from the node network's
    joint_right: float | None  # of those, the share of joint labels that are right
    alone_right: float | None  # the same for the node network's labels
    entropy: float | None  # mean, in nats
    edges: int
    unlikely: int  # edges whose labels are unlikely together
    graphs: int
    unconverged: list[int]  # graphs on which belief propagation did not converge, for any task
    calibration_error: float | None  # mean over tasks, of nodes with true labels


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Labels of graphs, side by side, with what speaks against them."""

    topology: Topology  # of all graphs
    labels: Tensor  # [tasks, nodes], of the whole model
    alone: Tensor  # [tasks, nodes], of the node network
    probabilities: Tensor  # [tasks, nodes, states], calibrated marginals of the whole model
    pair_probability: Tensor  # [tasks, edges], of both labels of an edge together, before calibration
    lift: Tensor  # [tasks, edges], see `lift_of_labels`
    converged: Tensor  # [tasks, graphs]
    residual: Tensor  # [tasks, graphs], last change of a log-message
    truth: Tensor | None = None  # [tasks, nodes], true labels to compare with, -1 where there are none

    @property
    def entropy(self) -> Tensor:
        """[tasks, nodes], of the probabilities, in nats: 0 where a label is certain."""
        p = self.probabilities.double()
        entropy: Tensor = -torch.xlogy(p, p).sum(-1)
        return entropy

    @property
    def calibration_error(self) -> list[float | None]:
        """The expected calibration error of each task, on nodes with true labels; None where there are none."""
        if self.truth is None:
            return [None] * len(self.labels)
        pairs = zip(self.probabilities, self.truth, strict=True)
        errors = [expected_calibration_error(own, true) for own, true in pairs]
        return [None if math.isnan(error) else error for error in errors]

    @property
    def disagrees(self) -> Tensor:
        """[tasks, nodes], True where the label is not the node network's."""
        return self.labels != self.alone

    @property
    def unlikely(self) -> Tensor:
        """[tasks, edges], True where the two labels of an edge are unlikely together."""
        return self.lift < UNLIKELY

    @property
    def largest_residual(self) -> float | None:
        """Last change of a log-message where belief propagation did not converge; None where it always did."""
        rough = self.residual[~self.converged]
        return float(rough.max()) if len(rough) else None

    def unlikely_edges_of_nodes(self) -> Tensor:
        """[tasks, nodes], how many edges of a node have labels that are unlikely together."""
        counts = torch.zeros_like(self.labels)
        for ends in self.topology.edge_index:
            counts.index_add_(1, ends, self.unlikely.long())
        return counts

    def summary(self) -> DiagnosisSummary:
        """Counts and means."""
        differs = self.disagrees
        known = torch.zeros_like(differs) if self.truth is None else differs & (self.truth >= 0)
        joint_right = alone_right = None
        if self.truth is not None and bool(known.any()):
            joint_right, alone_right = (
                float((part == self.truth)[known].double().mean()) for part in (self.labels, self.alone)
            )
        errors = [error for error in self.calibration_error if error is not None]
        return DiagnosisSummary(
            nodes=self.labels.numel(),
            disagreeing=int(differs.sum()),
            joint_right=joint_right,
            alone_right=alone_right,
            entropy=float(self.entropy.mean()) if self.labels.numel() else None,
            edges=self.lift.numel(),
            unlikely=int(self.unlikely.sum()),
            graphs=self.topology.num_graphs,
            unconverged=(~self.converged.all(0)).nonzero().flatten().tolist(),
            calibration_error=sum(errors) / len(errors) if errors else None,
        )


def join_diagnoses(parts: Sequence[Diagnosis], topology: Topology) -> Diagnosis:
    """Diagnoses of consecutive graphs as one, with the topology of all of them."""
    names = ("labels", "alone", "probabilities", "pair_probability", "lift", "converged", "residual")
    joined = {name: torch.cat([getattr(part, name) for part in parts], 1) for name in names}
    truth = None
    if any(part.truth is not None for part in parts):
        missing = (torch.full_like(part.labels, -1) for part in parts)
        pairs = zip(parts, missing, strict=True)
        truth = torch.cat([other if part.truth is None else part.truth for part, other in pairs], 1)
    return Diagnosis(topology=topology, truth=truth, **joined)


def pair_probabilities(beliefs: AnyBeliefs, labels: Tensor) -> Tensor:
    """Probabilities [R, edges] of the two labels of each edge together, by sum-product beliefs.

    Args:
        beliefs: with replicas [R].
        labels: [R, nodes].
    """
    return _of_labels(beliefs.edge, beliefs.field.edge_index, labels).exp()


def lift_of_labels(field: AnyField, labels: Tensor) -> Tensor:
    """How much likelier than by chance the two labels of each edge are together, by the edge's own table.

    The table is read as the log of a joint distribution of its two ends; the lift is its log-probability of the pair
    minus those of both labels by themselves (pointwise mutual information). A table without interaction gives 0.

    Args:
        field: with replicas [R].
        labels: [R, nodes].

    Returns:
        [R, edges], in nats.
    """
    edge = field.edge.expand(*field.replicas, *field.edge.shape[-3:])
    found = torch.empty(edge.shape[:-2], dtype=torch.float64, device=edge.device)
    for block in blocks(field.num_edges, edge[:, :1].numel()):
        joint = edge[:, block].double().flatten(-2).log_softmax(-1).unflatten(-1, edge.shape[-2:])
        source, target = field.edge_index[:, block]
        first = joint.logsumexp(-1).gather(-1, labels[:, source, None])[..., 0]
        second = joint.logsumexp(-2).gather(-1, labels[:, target, None])[..., 0]
        found[:, block] = _of_labels(joint, field.edge_index[:, block], labels) - first - second
    return found


def _of_labels(tables: Tensor, edge_index: Tensor, labels: Tensor) -> Tensor:
    """The entries [R, edges] of tables [R, edges, states, states] at the labels [R, nodes] of both ends."""
    pair = labels[:, edge_index[0]] * tables.shape[-1] + labels[:, edge_index[1]]
    return tables.flatten(-2).gather(-1, pair[..., None])[..., 0]
