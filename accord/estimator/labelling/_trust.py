"""How far labels can be trusted: warnings, falling back to the node network, and abstaining."""

import warnings

import torch
from torch import Tensor

from accord.errors import DepartureWarning, InputError, MajorityWarning, OptionError
from accord.estimator.knowledge import Knowledge
from accord.evaluation import NODE, most_departures, threshold_for
from accord.graphs import GraphBatch, Topology
from accord.inference import propagate
from accord.methods import FieldModel, flat_field

ABSTAINED = -1  # in place of a label
DAMPING = 0.5  # of propagation where only constraints couple the nodes


def trusted_labels(
    model: FieldModel, batch: GraphBatch, fallback: bool, precision: float | None, knowledge: Knowledge | None = None
) -> Tensor:
    """Joint labels [tasks, nodes] of graphs.

    Args:
        model: a fitted model.
        batch: the graphs.
        fallback: give the node network's labels of a graph where the joint ones are out of the usual.
        precision: leave -1 where this precision was not reached on validation nodes; None to label every node.
        knowledge: what is known about the graphs, which labels obey in any case.
    """
    if knowledge is not None:
        before, scores = model.field_and_scores(batch)
        field = knowledge.apply(before)
        with knowledge.naming_nodes():
            labels = model.labels_of(field)
        labels = _usual(model, labels, _alone(model, labels, scores, batch, knowledge), batch.topology, fallback)
        if precision is None:
            return labels
        return knowledge.keep(abstain(model, labels, model.calibrated(model.beliefs_of(field, "sum")), precision))
    if precision is None:
        return _usual(model, *model.joint_and_alone(batch), batch.topology, fallback)
    answers = model.answers(batch)
    whole = answers[model.method]
    labels = _usual(model, whole.labels, answers[NODE].labels, batch.topology, fallback)
    return abstain(model, labels, whole.probabilities, precision)


def _alone(model: FieldModel, labels: Tensor, scores: Tensor, batch: GraphBatch, knowledge: Knowledge) -> Tensor:
    """Labels [tasks, nodes] of the node network alone, given the same knowledge.

    Solving under constraints takes time, so this is done only where the joint labels look out of the usual.
    """
    alone = knowledge.keep(scores.argmax(-1))
    if not knowledge.is_of_pairs or not bool(unusual_graphs(model, labels != alone, batch.topology).any()):
        return alone
    field = knowledge.apply(flat_field(scores.log_softmax(-1), batch.topology))
    with knowledge.naming_nodes():
        return propagate(field, semiring="max", damping=DAMPING).decode()


def check_precision(model: FieldModel, precision: float, with_threshold: bool) -> None:
    """Refuse a precision that cannot be asked for."""
    if with_threshold:
        raise OptionError("NodeClassifier.predict: give either precision or threshold, not both.")
    if isinstance(precision, bool) or not isinstance(precision, int | float) or not 0 < precision <= 1:
        raise OptionError(f"NodeClassifier.predict: precision is {precision!r}; give a number above 0, at most 1.")
    if not model.validated.precision:
        raise InputError(
            "NodeClassifier.predict: this model was not compared with validation labels, or saved by an earlier "
            "version, so no precision is known. Fit it again, or leave precision out."
        )


def abstain(model: FieldModel, labels: Tensor, probabilities: Tensor, precision: float) -> Tensor:
    """Labels [tasks, nodes], -1 where the probability of the label is below the threshold of that precision."""
    limits = [threshold_for(curve, precision) for curve in model.validated.precision]
    sure = probabilities.gather(-1, labels[..., None])[..., 0].double()
    return labels.masked_fill(sure < torch.tensor(limits, dtype=torch.float64).to(sure)[:, None], ABSTAINED)


def _usual(model: FieldModel, labels: Tensor, alone: Tensor, topology: Topology, fallback: bool) -> Tensor:
    """The labels; where they depart from the node network's too often, a warning, and its labels if asked for."""
    far = unusual_graphs(model, labels != alone, topology)
    if not bool(far.any()):
        return labels
    task, graph = far.nonzero()[0].tolist()
    own = topology.graph == graph
    count, graphs = int((labels != alone)[task, own].sum()), int(far.any(0).sum())
    more = f" The same holds for {graphs - 1} more graphs." if graphs > 1 else ""
    warn_of_departure(model, task, count, int(own.sum()), fallback, more)
    return torch.where(far[:, topology.graph], alone, labels) if fallback else labels


def warn_of_departure(
    model: FieldModel, task: int, count: int, nodes: int, fallback: bool, more: str = "", stacklevel: int = 7
) -> None:
    """Warn of a graph where joint labels of a task differ from the node network's at `count` of `nodes` nodes."""
    seen, usual, _ = model.validated.departure[task]
    action = (
        "The node network's labels are given instead."
        if fallback
        else "Compare with answers(); NodeClassifier(fallback=True) gives the node network's labels in such cases."
    )
    warnings.warn(
        f"NodeClassifier.predict: joint labels differ from the node network's at {count} of {nodes} nodes; "
        f"on validation graphs at {int(usual)} of {int(seen)}. The graph may be unlike the training graphs, and its "
        f"joint labels wrong.{more} {action}",
        DepartureWarning,
        stacklevel=stacklevel,
    )


def unusual_graphs(model: FieldModel, differing: Tensor, topology: Topology) -> Tensor:
    """[tasks, graphs], True where joint labels differ from the node network's more often than is usual.

    Args:
        model: knows what is usual; a model that was never validated knows nothing.
        differing: [tasks, nodes], where they differ.
        topology: of the graphs.
    """
    counts = differing.new_zeros(len(differing), topology.num_graphs, dtype=torch.long)
    counts.index_add_(1, topology.graph, differing.long())
    far = torch.zeros_like(counts, dtype=torch.bool)
    sizes = torch.bincount(topology.graph, minlength=topology.num_graphs).tolist()
    for task, usual in enumerate(model.validated.departure):
        for graph in counts[task].nonzero().flatten().tolist():
            far[task, graph] = int(counts[task, graph]) > most_departures(usual, sizes[graph])
    return far


def warn_of_majority(model: FieldModel, reads_words: bool) -> None:
    """Warn of a model that labels validation nodes no better than the most frequent training label would."""
    if not model.validated.beats_majority:
        others = "another encoder ('mlp' or 'sage'), features='standardised'"
        others = "another encoder ('bigru', 'transformer' or 'convolution')" if reads_words else others
        warnings.warn(
            "NodeClassifier.fit: on validation data the model is not better than the most frequent training label. "
            f"Check that features and labels belong together; try more epochs, {others}, or level='f1' if one label is "
            "rare.",
            MajorityWarning,
            stacklevel=4,
        )
