"""`fit(..., unlabelled=graphs)`: confident joint labels of unlabelled graphs as further training labels.

The fitted model labels the graphs. Joint labels that it holds to be likely enough become training labels, and the same
networks are trained again with them. They are kept only if they are better on validation data beyond noise: on most
data that were tried there was nothing to gain (results/unlabelled).
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.estimator._checks import check_graphs
from accord.estimator.fitting._inputs import portions, trainable
from accord.estimator.labelling._trust import unusual_graphs
from accord.evaluation import NODE, Judged, is_better
from accord.graphs import GraphBatch
from accord.learning import HistoryRow, Report, TrainingRun
from accord.methods import FieldModel, check_again

if TYPE_CHECKING:
    from accord.estimator._classifier import NodeClassifier

CONFIDENT = 0.8  # calibrated probability from which a joint label counts
STAGE = "unlabelled"  # subfolder of its checkpoint
Fit = Callable[[TrainingRun], FieldModel]


def read_unlabelled(model: "NodeClassifier", graphs: Sequence[Data]) -> list[Data]:
    """Graphs with the columns of the training graphs and raw features; their labels and masks are left out.

    Args:
        model: whose training graphs have been read.
        graphs: given as `fit(unlabelled=...)`.
    """
    check_again(model.recipe_, "fit(unlabelled=...)", "leave out unlabelled")
    found = []
    wanted = model.shape_.edge_attributes
    for number, graph in enumerate(check_graphs(graphs, "fit: unlabelled")):
        bare = copy.copy(trainable(model._ordered(graph)))
        bare.y = None
        if not wanted:
            bare.edge_attr = None
        own = GraphBatch.collate([bare])
        if own.num_edges and own.num_edge_attributes != wanted:
            raise GraphError(
                f"NodeClassifier.fit: unlabelled graph {number} has {own.num_edge_attributes} edge attributes, the "
                f"training graphs have {wanted}. Give all graphs the same."
            )
        found.append(bare)
    return found


def learn_from(
    model: "NodeClassifier", graphs: Sequence[Data], run: TrainingRun, fit: Fit
) -> tuple[FieldModel, TrainingRun, dict[str, Any]]:
    """Train once more with confident labels of unlabelled graphs, and keep what is better on validation data.

    Args:
        model: fitted on the run.
        graphs: unlabelled, as `read_unlabelled` returns them.
        run: of the training before.
        fit: trains the same networks on another run.

    Returns:
        The model that is kept, the run that it was trained on, and what happened: how many graphs there were, the share
        of their labels that were used, whether the second training was kept, and both validation scores.
    """
    first = model.model_
    extra, share = confident_labels(model, [model._treat(graph) for graph in graphs], run)
    told: dict[str, Any] = {"graphs": len(graphs), "share": share, "kept": False, "scores": None}
    if not extra:
        return first, run, told
    more = replace(run, train=[*run.train, *extra])
    done = first.history[-1]["epoch"] if first.history else 0
    second = fit(replace(more.stage(STAGE), report=_after(done, run.report)))
    whole = GraphBatch.collate(run.validation)
    assert whole.y is not None  # the trainer has refused graphs without labels
    truth = model.replicas_.targets(whole.y).cpu()
    before, after = (judge(own, portions_of(model, run.validation)) for own in (first, second))
    told["scores"] = [own.score(model.level, truth, whole.topology) for own in (before, after)]
    told["kept"] = is_better(model.level, before, after, truth, whole.topology)
    if not told["kept"]:
        return first, run, told
    second.history = [*first.history, *(_shifted(row, done) for row in second.history[1:])]
    return second, more, told


def confident_labels(model: "NodeClassifier", graphs: Sequence[Data], run: TrainingRun) -> tuple[list[Data], float]:
    """Graphs with the joint labels that are likely enough, -1 elsewhere, and the share of labels that these are.

    The graphs are treated as the training graphs were; those without such a label are left out. A graph whose joint
    labels differ from the node network's far more often than on validation graphs gets none.
    """
    column = next(graph.y.dim() for graph in run.train if graph.y is not None)
    labelled: list[Data] = []
    used = total = 0
    for portion in portions_of(model, graphs):
        batch = GraphBatch.collate(portion).to(model.model_.device, torch.float32)
        answers = model.model_.answers(batch)
        labels, probabilities = answers[model.method].labels, answers[model.method].probabilities
        sure = probabilities.gather(-1, labels[..., None])[..., 0] >= CONFIDENT
        far = unusual_graphs(model.model_, labels != answers[NODE].labels, batch.topology)
        sure &= ~far[:, batch.topology.graph]
        y = labels.masked_fill(~sure, -1).t().cpu()
        used, total = used + int(sure.sum()), total + sure.numel()
        for graph, own in zip(portion, y.split([len(graph.x) for graph in portion]), strict=True):
            if bool((own >= 0).any()):
                extra = Data(x=graph.x, edge_index=graph.edge_index, edge_attr=graph.edge_attr)
                extra.y = (own[:, 0] if column == 1 else own).to(graph.x.device)
                labelled.append(extra)
    return labelled, used / max(total, 1)


def judge(model: FieldModel, portions: Iterator[list[Data]]) -> Judged:
    """What a model says about treated graphs."""
    labels: list[Tensor] = []
    probabilities: list[Tensor] = []
    for portion in portions:
        answer = model.answer_of(model.field(GraphBatch.collate(portion).to(model.device, torch.float32)))
        labels.append(answer.labels.cpu())
        probabilities.append(answer.probabilities.cpu())
    return Judged(torch.cat(labels, 1), torch.cat(probabilities, 1))


def portions_of(model: "NodeClassifier", graphs: Sequence[Data]) -> Iterator[list[Data]]:
    """Graphs in portions whose edge tables fit into memory together."""
    return portions(graphs, model.ensemble * model.shape_.num_tasks * model.shape_.num_states**2)


def _after(done: float, report: Report | None) -> Report | None:
    """The callback with epochs that go on from those before; the row before any update is left out."""
    if report is None:
        return None
    return lambda row: report(_shifted(row, done)) if row["epoch"] else None


def _shifted(row: HistoryRow, done: float) -> HistoryRow:
    return {**row, "epoch": row["epoch"] + done}
