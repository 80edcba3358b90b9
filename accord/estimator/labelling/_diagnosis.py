"""Diagnosis of the labels that a model gives to one batch of graphs, given what is known about them."""

from contextlib import nullcontext

from torch import Tensor

from accord.estimator.knowledge import Knowledge
from accord.evaluation import Diagnosis, lift_of_labels, pair_probabilities
from accord.graphs import GraphBatch
from accord.methods import FieldModel


def diagnose_batch(
    model: FieldModel, batch: GraphBatch, knowledge: Knowledge | None, truth: Tensor | None
) -> Diagnosis:
    """Solve the field of a batch, and look for what speaks against the labels.

    Args:
        model: a fitted model.
        batch: the graphs.
        knowledge: what is known about them; known labels are not compared with the truth.
        truth: [tasks, nodes], -1 where a label is missing; None where there are none.
    """
    field, scores = model.field_and_scores(batch)
    with nullcontext() if knowledge is None else knowledge.naming_nodes():
        field = field if knowledge is None else knowledge.apply(field)
        labels = model.labels_of(field)
    beliefs = model.beliefs_of(field, "sum")
    if truth is not None and knowledge is not None and knowledge.known is not None:
        truth = truth.masked_fill(knowledge.known.to(truth.device) >= 0, -1)
    return Diagnosis(
        topology=batch.topology,
        labels=labels.cpu(),
        alone=scores.argmax(-1).cpu(),
        probabilities=model.calibrated(beliefs).cpu(),
        pair_probability=pair_probabilities(beliefs, labels).cpu(),
        lift=lift_of_labels(field, labels).cpu(),
        converged=beliefs.converged.cpu(),
        residual=beliefs.residual.cpu(),
        truth=None if truth is None else truth.cpu(),
    )
