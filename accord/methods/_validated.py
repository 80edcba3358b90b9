"""What training and validation labels say about the answers of a model: kept with its choice, a row for each task."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.evaluation import (
    calibrate,
    fit_calibration,
    level_score,
    node_accuracy,
    precision_curve,
    usual_departure,
)
from accord.graphs import GraphBatch, Topology
from accord.inference.triangles import AnyBeliefs
from accord.learning import Replicas, TrainingRun
from accord.learning.training import count_labels

if TYPE_CHECKING:
    from accord.methods._model import FieldModel

ABOUT_ONE = 1.25  # times as dense: less is no reason for care
MOST_TIMES = 4.0  # beyond it the guard would forbid everything
PORTION_EDGES = 2**16  # solved at once where there are many graphs
KEYS = (
    "unseen",
    "temperature",
    "evidence_share",
    "departure",
    "precision",
)  # of a choice; models saved before them have none


@dataclass(frozen=True)
class Validated:
    """Plain values; an empty list means that nothing was measured."""

    unseen: list[list[int]] = field(default_factory=list)  # of each task: states that no training label has
    temperature: list[float] = field(default_factory=list)  # of the marginals, see `fit_calibration`
    evidence_share: list[float] = field(default_factory=list)  # likewise
    departure: list[list[float]] = field(default_factory=list)  # see `usual_departure`
    precision: list[list[list[float]]] = field(default_factory=list)  # see `precision_curve`
    beats_majority: bool = True  # known after training only; it is not saved

    @classmethod
    def from_config(cls, config: Mapping[str, Sequence[Any]]) -> "Validated":
        """Read what `to_config` wrote; a missing key means that nothing was measured."""
        return cls(
            [[int(state) for state in row] for row in config.get("unseen", [])],
            [float(value) for value in config.get("temperature", [])],
            [float(value) for value in config.get("evidence_share", [])],
            [[float(value) for value in row] for row in config.get("departure", [])],
            [[[float(value) for value in pair] for pair in curve] for curve in config.get("precision", [])],
        )

    def to_config(self) -> dict[str, list[Any]]:
        """Everything that was measured, by name."""
        return {name: value for name, value in vars(self).items() if name in KEYS and value}

    def barred(self, num_states: int, like: Tensor) -> Tensor | None:
        """[R, states], True for states that are never predicted; None where there is none.

        Args:
            num_states: how many there are.
            like: [R, ...], on the same device; all seeds of a task have its states.
        """
        if not any(self.unseen):
            return None
        mask = torch.zeros(len(self.unseen), num_states, dtype=torch.bool)
        for task, states in enumerate(self.unseen):
            mask[task, states] = True
        return mask.repeat(len(like) // len(mask), 1).to(like.device)

    def calibrated(self, beliefs: AnyBeliefs) -> Tensor:
        """Probabilities [R, nodes, states] of sum-product beliefs."""
        if not self.temperature:
            return beliefs.node.exp()
        share, temperature = (beliefs.node.new_tensor(values) for values in (self.evidence_share, self.temperature))
        return calibrate(beliefs.node, evidence_of(beliefs), share, temperature)


def evidence_of(beliefs: AnyBeliefs) -> Tensor:
    """Log-probabilities [R, nodes, states] of each node by its own potentials."""
    return beliefs.field.node.expand_as(beliefs.node).log_softmax(-1)


def unseen_states(train: Sequence[Data], num_states: int) -> Validated:
    """The states that no training label has, for each task; a task without any label has all states."""
    unseen = []
    for counts in count_labels(train, num_states):
        unseen.append((counts == 0).nonzero().flatten().tolist() if bool(counts.any()) else [])
    return Validated(unseen)


@torch.no_grad()
def measure(
    model: "FieldModel", run: TrainingRun, replicas: Replicas, level: str, node_weight: Tensor | None = None
) -> Validated:
    """What the validation graphs of a run say about a trained model whose choice is made.

    Args:
        model: with the states that training has seen.
        run: training and validation graphs.
        replicas: seeds and tasks.
        level: at which the model is compared with the most frequent training label.
        node_weight: [R], of the node network in the field. If given, probabilities are calibrated with caution: few
            labels do not make them certain, and where training graphs are denser than validation graphs, they have to
            hold for such graphs too.
    """
    denser = 1.0 if node_weight is None else times_denser(run)
    found: list[tuple[Tensor, ...]] = []
    for graphs in _portions(run.validation):
        batch = GraphBatch.collate(graphs).to(model.device, torch.float32)
        solved = model.field(batch)
        beliefs = model.beliefs_of(solved, "sum")
        alone = model.node_logits(batch).argmax(-1)
        # Edges that count more often have about the effect of more edges.
        stressed = (
            beliefs if denser == 1 else model.beliefs_of(solved.with_potentials(edge=solved.edge * denser), "sum")
        )
        parts = (model.labels_of(solved), beliefs.node, evidence_of(beliefs), alone, stressed.node)
        found.append(tuple(part.cpu() for part in parts))
    labels, logs, evidence, alone, then = (torch.cat(part, 1) for part in zip(*found, strict=True))
    whole = GraphBatch.collate(run.validation)
    assert whole.y is not None  # the trainer has refused graphs without labels
    targets = replicas.targets(whole.y)[: len(labels)].cpu()
    tasks = [replicas.seed_and_task(place)[1] for place in range(len(labels))]
    counts = count_labels(run.train, logs.shape[-1])[tasks]
    weight = None if node_weight is None else node_weight.cpu()
    share, temperature = fit_calibration(logs, evidence, targets, weight, None if denser == 1 else then)
    probabilities = calibrate(logs, evidence, share, temperature)
    sure = probabilities.gather(-1, labels[..., None])[..., 0]
    topology = whole.to(torch.device("cpu"), torch.float32).topology
    return Validated(
        model.validated.unseen,
        temperature.tolist(),
        share.tolist(),
        [usual_departure(row, topology) for row in labels != alone],
        [
            precision_curve(own[true >= 0], (label == true)[true >= 0])
            for own, label, true in zip(sure, labels, targets, strict=True)
        ],
        _beats_majority(labels, probabilities, targets, counts, topology, level),
    )


def times_denser(run: TrainingRun) -> float:
    """How many times as many edges for each node training graphs have as validation graphs; 1 where it is about one.

    New graphs may be as dense as the training graphs. The parts of one graph that is split unevenly differ so.
    """
    train, validation = (_edges_per_node(graphs) for graphs in (run.train, run.validation))
    times = train / validation if validation else 1.0
    return min(times, MOST_TIMES) if times > ABOUT_ONE else 1.0


def _edges_per_node(graphs: Sequence[Data]) -> float:
    edges = nodes = 0
    for graph in graphs:
        edges, nodes = edges + graph.num_edges, nodes + int(graph.num_nodes or 0)
    return edges / max(nodes, 1)


def _portions(graphs: Sequence[Data]) -> Iterator[list[Data]]:
    """Lists of graphs with a bounded count of edges together; a larger graph stands alone."""
    portion: list[Data] = []
    edges = 0
    for graph in graphs:
        if portion and edges + graph.num_edges > PORTION_EDGES:
            yield portion
            portion, edges = [], 0
        portion.append(graph)
        edges += graph.num_edges
    yield portion


def _beats_majority(
    labels: Tensor, probabilities: Tensor, targets: Tensor, counts: Tensor, topology: Topology, level: str
) -> bool:
    """Whether labels are better than the most frequent training label of each task, at the level or in node accuracy.

    Args:
        labels: [R, nodes], of the model.
        probabilities: [R, nodes, states], of the model.
        targets: [R, nodes], true labels of the same nodes.
        counts: [R, states], how often each state occurs among the training labels.
        topology: of the graphs of the first three.
        level: one of `accord.evaluation.LEVELS`.
    """
    counts = counts.double()
    shares = ((counts + 1) / (counts + 1).sum(-1, keepdim=True)).log()[:, None].expand_as(probabilities)
    most = counts.argmax(-1)[:, None].expand_as(labels)
    logs = probabilities.double().log()
    ours = (level_score(level, labels, targets, topology, logs), node_accuracy(labels, targets))
    theirs = (level_score(level, most, targets, topology, shares), node_accuracy(most, targets))
    return any(float((own - other).nanmean()) > 1e-9 for own, other in zip(ours, theirs, strict=True))
