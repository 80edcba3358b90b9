"""What the field of a sequence says beyond labels of single nodes: the best labellings, and spans; all exact."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError, InfeasibleError, InputTypeError, OptionError
from accord.estimator._checks import check_graph
from accord.estimator.knowledge import States
from accord.field import PathChains, chains_of
from accord.field.triangles import TriangleField
from accord.inference import eliminate_beliefs, k_best

if TYPE_CHECKING:
    from accord.estimator.labelling._labelling import Labelling


@dataclass(frozen=True, eq=False)
class BestLabellings:
    """The most probable labellings of a sequence, best first; fewer than asked for if there are no more."""

    labels: Tensor  # [labellings, nodes]
    probabilities: Tensor  # [labellings], of whole labellings under the field, before calibration


def best_labellings(model: "Labelling", graph: Data, k: int) -> BestLabellings:
    """The k most probable labellings of a sequence."""
    chains = _chains(model, graph, "k_best")
    labels, scores = k_best(chains.field, k)
    found = scores[0, 0] > -torch.inf
    total = eliminate_beliefs(chains.field).log_partition[0, 0]
    return BestLabellings(labels[0, 0, found].cpu(), (scores[0, 0, found] - total).exp().cpu())


def span_probability(model: "Labelling", graph: Data, first: int, labels: Sequence[int | str]) -> float:
    """The probability that consecutive nodes have these labels, other nodes having any."""
    where = "span_probability"
    chains = _chains(model, graph, where)
    nodes = chains.layout.num_nodes
    if isinstance(labels, str):
        raise InputTypeError(f"NodeClassifier.{where}: labels is the text {labels[:40]!r}. Give a list of labels.")
    if isinstance(first, bool) or not isinstance(first, int) or not 0 <= first or first + len(labels) > nodes:
        raise OptionError(
            f"NodeClassifier.{where}: the span starts at node {first!r} and has {len(labels)} labels, but the sequence "
            f"has nodes 0 to {nodes - 1}."
        )
    states = States(model.shape_.num_states, 1, model.label_names_)
    known = torch.full((nodes,), -1)
    for place, label in enumerate(labels):
        known[first + place] = states.of(label, f"NodeClassifier.{where}: labels")
    field = chains.field
    barred = (field.node[0, 0].gather(-1, known.clamp_min(0)[:, None].to(field.node.device))[:, 0] == -torch.inf).cpu()
    if bool((barred & (known >= 0)).any()):
        return 0.0
    clamped = field.clamp(known[None].to(field.node.device))
    try:
        inside = eliminate_beliefs(clamped).log_partition
    except InfeasibleError:  # the labels include a transition that is ruled out
        return 0.0
    return float((inside - eliminate_beliefs(field).log_partition)[0, 0].exp())


def _chains(model: "Labelling", graph: Data, where: str) -> PathChains:
    """The field of one sequence as a chain."""
    model._check_fitted()
    if model.shape_.num_tasks > 1:
        raise OptionError(f"NodeClassifier.{where}: the model has several tasks; only one is supported.")
    field = model.model_.field(model.collate([check_graph(graph, where)]))
    # A path has no triangles, so a field that counts them has none to count here.
    chains = chains_of(field.pairs if isinstance(field, TriangleField) else field)
    if chains is None:
        raise GraphError(
            f"NodeClassifier.{where}: the graph is not a sequence. Number its nodes in order and link each to the next "
            "one: data.edge_index = accord.graphs.path_edges(num_nodes)."
        )
    return chains
