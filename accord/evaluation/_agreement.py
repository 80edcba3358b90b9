"""What joint labelling can gain: how well edges with equal labels are known, and what perfect knowledge would give."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.evaluation._levels import macro_auc
from accord.evaluation._metrics import graph_accuracy, node_accuracy
from accord.field import PairwiseField
from accord.graphs import Topology
from accord.inference import propagate

STRONG = 20.0  # log-potential of an edge whose agreement is known: more than any node's evidence
DAMPING, SWEEPS = 0.5, 100


@dataclass(frozen=True)
class JointGain:
    """How far edges can go on graphs with labels; means over tasks, None where nothing can be compared."""

    equal: float | None  # share of the edges, labelled at both ends, that join equal labels
    known: dict[str, float | None]  # part of a model -> area under the ROC curve of its probability of equal labels
    node_accuracy: float | None  # by the same node evidence, if it were known which edges join equal labels
    graph_accuracy: float | None


def joint_gain(evidence: Tensor, agreement: Mapping[str, Tensor], truth: Tensor, topology: Topology) -> JointGain:
    """Compare what parts of a model know about agreement with what could be known.

    Args:
        evidence: [tasks, nodes, states], log-probabilities by the node network.
        agreement: part -> [tasks, edges], its probability that both ends have the same label.
        truth: [tasks, nodes], labels; -1 where unknown.
        topology: the graphs.
    """
    source, target = topology.edge_index
    known = (truth[:, source] >= 0) & (truth[:, target] >= 0)
    equal = torch.where(known, truth[:, source] == truth[:, target], -1).long()  # 1, 0, or -1 for unknown
    labels = _best_labels(evidence, equal, topology)
    return JointGain(
        _mean((equal == 1).sum(-1) / known.sum(-1)),
        {part: _mean(macro_auc(torch.stack([-p, p], -1), equal)) for part, p in agreement.items()},
        _mean(node_accuracy(labels, truth)),
        _mean(graph_accuracy(labels, truth, topology)),
    )


def _best_labels(evidence: Tensor, equal: Tensor, topology: Topology) -> Tensor:
    """Labels [tasks, nodes] by the evidence, given which edges join equal labels (1) or different ones (0)."""
    same = torch.eye(evidence.shape[-1], dtype=evidence.dtype, device=evidence.device)
    sign = torch.where(equal < 0, 0, 2 * equal - 1)[..., None, None].to(evidence.dtype)
    tables = STRONG * sign * same
    field = PairwiseField(topology.edge_index, evidence, tables, topology.graph, topology.num_graphs)
    return propagate(field, semiring="max", damping=DAMPING, max_sweeps=SWEEPS).decode()


def _mean(values: Tensor) -> float | None:
    mean = float(values.double().nanmean())
    return None if mean != mean else mean
