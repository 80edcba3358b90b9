"""Labels of a graph that no single process holds: each process labels its own nodes, together with all others."""

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.distributed import PartGraph, on_part, part_batch
from accord.distributed._together import together, total
from accord.encoders import Encoder
from accord.errors import ConvergenceWarning, OptionError
from accord.estimator._classifier import NodeClassifier
from accord.estimator.labelling._trust import abstain, check_precision, warn_of_departure
from accord.evaluation import most_departures
from accord.field import PairwiseField
from accord.learning.selection._combination import SPANNING
from accord.methods import ProxyModel, TriangleModel


@dataclass(frozen=True, eq=False)
class PartLabels:
    """What a model says about the own nodes of a part."""

    ids: Tensor  # [own]
    labels: Tensor  # [tasks, own], -1 where a precision was asked for and not reached
    probabilities: Tensor  # [tasks, own, states], calibrated
    residual: float | None  # last change of a log-message, if belief propagation did not converge


def check_parts(model: NodeClassifier) -> None:
    """Refuse a model that needs the whole graph in one process.

    Raises:
        OptionError: says what of the model needs it.
    """
    model._check_fitted()
    own = model.model_
    networks = [module for part in own.parts.values() for module in part.modules() if isinstance(module, Encoder)]
    reason = None
    if any(not network.on_parts for network in networks):
        name = next(type(network).__name__ for network in networks if not network.on_parts)
        reason = f"its network {name} reads the graph as a whole. Use 'gcn', 'sage', 'gat', 'gcnii', 'mlp' or 'linear'"
    elif isinstance(own, TriangleModel):
        reason = "it counts triangles (order=3). Use order=2"
    elif model.treatment_.vocabulary is not None or getattr(own, "transitions", None) is not None:
        reason = "it labels sequences. Divide them among processes as they are, with --engine ray"
    elif isinstance(own, ProxyModel) and bool((own.chosen.appearance == SPANNING).any()):
        reason = "its edges are weighted by spanning trees of the whole graph. Fit again, with a recipe without them"
    if reason is not None:
        raise OptionError(
            f"NodeClassifier: this model cannot label a graph in parts: {reason}, or predict in one process."
        )


def columns_of_model(model: NodeClassifier) -> list[str] | None:
    """Names of the columns that a model reads, for `accord.distributed.read_parts`; None for all of them."""
    nodes, edges = model.columns_.nodes, model.columns_.edges
    if nodes is None or (edges is None and model.shape_.edge_attributes):
        return None
    return [*nodes.names, *(() if edges is None else edges.names)]


@torch.no_grad()
def predict_part(model: NodeClassifier, graph: PartGraph, precision: float | None = None) -> PartLabels:
    """Label the own nodes of a part as `NodeClassifier.predict` labels them in the whole graph; called by all together.

    Networks exchange the representations of border nodes after each layer, belief propagation their messages, and
    decoding their labels. What `predict` does beyond that, a search where beliefs decide nothing and the repair
    of forbidden pairs, needs the whole graph: the first is left out, the second raises InfeasibleError.

    Args:
        model: a fitted model, the same in every process.
        graph: this process's part.
        precision: leave -1 where validation nodes do not show that labels of this probability are right that often.
    """
    check_parts(model)
    own, part = model.model_, graph.part
    if precision is not None:
        check_precision(own, precision, False)
    with together(part.halo.group):
        batch = model.collate([graph.to_data()])
    batch = part_batch(batch, part)
    field, scores = own.field_and_scores(batch)
    assert isinstance(field, PairwiseField)  # check_parts refuses triangles
    field = on_part(field, part)
    beliefs = own.beliefs_of(field, "sum")
    mine = slice(part.num_own)
    probabilities = own.calibrated(beliefs)[:, mine]
    labels = _usual(model, own.labels_of(field)[:, mine], scores.argmax(-1)[:, mine], graph)
    if precision is not None:
        labels = abstain(own, labels, probabilities, precision)
    residual = None if bool(beliefs.converged.all()) else float(beliefs.residual.max())
    if residual is not None and part.rank == 0:
        warnings.warn(
            f"NodeClassifier: belief propagation did not converge (last change of a log-message {residual:.1e}); the "
            "probabilities are rough.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return PartLabels(graph.ids, labels.cpu(), probabilities.cpu(), residual)


def _usual(model: NodeClassifier, labels: Tensor, alone: Tensor, graph: PartGraph) -> Tensor:
    """Labels [tasks, own]; the node network's, if asked for, of tasks whose labels depart from them too often."""
    part = graph.part
    counts = total((labels != alone).sum(-1).cpu(), part.halo.group).tolist()
    usual = model.model_.validated.departure
    far = [task for task in range(len(usual)) if counts[task] > most_departures(usual[task], part.num_nodes)]
    if far and part.rank == 0:
        warn_of_departure(model.model_, far[0], counts[far[0]], part.num_nodes, model.fallback, stacklevel=5)
    if far and model.fallback:
        labels[far] = alone[far]
    return labels
