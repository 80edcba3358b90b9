"""Labels of graphs as the columns of a table."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.app.commands._diagnosis import diagnosis_columns, diagnosis_notes
from accord.app.commands.predict._tables import Columns
from accord.app.console import in_command_line_words
from accord.app.knowledge import GivenOptions, KnownRow
from accord.app.runs import Run
from accord.app.settings import threshold
from accord.app.sources import read_for
from accord.datasets import TableMapping
from accord.errors import ConvergenceWarning, GraphError, InfeasibleError, OptionError
from accord.estimator import NodeClassifier
from accord.evaluation import Answers, Diagnosis
from accord.graphs import has_tokens


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked about every graph.

    Attributes:
        marginals: give the probability of every state, not only of the label.
        given: what is known about the graphs.
        diagnose: add columns with what is doubtful.
        limit: thresholds of states, such as "fraud=0.3"; None for none.
        precision: leave labels empty where this precision was not reached on validation data; None labels every node.
    """

    marginals: bool = False
    given: GivenOptions = field(default_factory=GivenOptions)
    diagnose: bool = False
    limit: str | None = None
    precision: float | None = None

    def __post_init__(self) -> None:
        if self.diagnose and (self.limit is not None or self.precision is not None):
            raise OptionError(
                "--diagnose is about joint labels. Leave it out, or leave out --threshold and --precision."
            )


def predict_graphs(
    run: Run, path: Path, wanted: Wanted, mapping: TableMapping | None = None
) -> tuple[Columns, list[str]]:
    """Label one graph, or every graph of a folder or file; labels in files are read only where they are known labels.

    Args:
        run: a finished run, or the folder of a saved model.
        path: a graph, or a folder of graphs.
        wanted: what is asked.
        mapping: which tables and columns hold what.

    Returns:
        Columns: graph (if there are several), node, task (if there are several), label, probabilities, and those of a
        diagnosis; and a diagnosis of each graph in words.
    """
    model, rows = NodeClassifier.load(run.path), wanted.given.rows()
    graphs = read_for(model, path, mapping, wanted.given.reads_labels)
    names = [graph.graph_name for graph in graphs]
    check_graph_column(rows, names, path, wanted.given)
    several = len(graphs) > 1
    return label_graphs(model, graphs, wanted, rows, [path / name if several else path for name in names], several)


def label_graphs(
    model: NodeClassifier,
    graphs: Sequence[Data],
    wanted: Wanted,
    rows: Sequence[KnownRow],
    places: Sequence[Path],
    named: bool,
) -> tuple[Columns, list[str]]:
    """Label graphs that were read.

    Args:
        model: a fitted model.
        graphs: with `graph_name`.
        wanted: what is asked.
        rows: known labels of all graphs.
        places: of the graphs, for messages.
        named: whether there is a column with their names.

    Returns:
        As `predict_graphs`.
    """
    limits = None if wanted.limit is None else threshold(wanted.limit, model.label_names_)
    columns: Columns = {}
    notes: list[str] = []
    together = _together(model, graphs, wanted, limits) if len(graphs) > 1 else None
    first = 0
    for graph, place in zip(graphs, places, strict=True):
        name = graph.graph_name if named else None
        if together is not None:
            own_nodes = slice(first, first + len(graph.x))
            first = own_nodes.stop
            labels, probabilities = (values[:, own_nodes] for values in together)
            own = label_columns(graph, model, labels, probabilities, wanted.marginals)
        else:
            own, told = _alone(model, graph, wanted, rows, limits, place, name)
            notes += told
        if name is not None:
            own = {"graph": [name] * len(own["node"])} | own
        for column, values in own.items():
            columns.setdefault(column, []).extend(values)
    return columns, notes


def _together(
    model: NodeClassifier, graphs: Sequence[Data], wanted: Wanted, limits: Any
) -> tuple[Tensor, Tensor] | None:
    """Labels [tasks, nodes] and probabilities of all graphs at once, which is many times faster for small ones.

    None where that would lose something: graphs with knowledge of their own, a diagnosis, or anything that must be
    reported with the name of its graph.
    """
    if wanted.given != GivenOptions() or wanted.diagnose:
        return None
    try:
        found = model.answers(graphs)
        if found.residual is not None:
            return None
        labels = found.labels[found.whole]
        if limits is not None or wanted.precision is not None:
            chosen = model.predict(graphs, threshold=limits, precision=wanted.precision)
            labels = torch.cat([own.reshape(len(own), -1) for own in chosen]).t()
    except (GraphError, InfeasibleError):
        return None
    return labels, found.probabilities[found.whole]


def _alone(
    model: NodeClassifier,
    graph: Data,
    wanted: Wanted,
    rows: Sequence[KnownRow],
    limits: Any,
    place: Path,
    name: str | None,
) -> tuple[Columns, list[str]]:
    """Columns and notes of one graph; errors and warnings name it."""
    try:
        arguments = wanted.given.arguments(model, graph, rows, name)
        found = model.diagnose(graph, **arguments) if wanted.diagnose else model.answers(graph, **arguments)
        chosen = None
        if limits is not None or wanted.precision is not None:
            chosen = model.predict(graph, threshold=limits, precision=wanted.precision, **arguments)
    except (GraphError, InfeasibleError) as error:
        raise type(error)(f"{place}: {in_command_line_words(error)}") from error
    residual = found.residual if isinstance(found, Answers) else found.largest_residual
    if residual is not None:
        warnings.warn(
            f"{place}: belief propagation did not converge (last change of a log-message {residual:.1e}); the "
            "probabilities are rough.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if isinstance(found, Answers):
        labels, probabilities = found.labels[found.whole], found.probabilities[found.whole]
    else:
        labels, probabilities = found.labels, found.probabilities
    labels = labels if chosen is None else chosen.reshape(graph.num_nodes, -1).t()
    own = label_columns(graph, model, labels, probabilities, wanted.marginals)
    if not isinstance(found, Diagnosis):
        return own, []
    states = state_names(model)
    return own | diagnosis_columns(found, states), diagnosis_notes(found, graph, states, name)


def check_graph_column(rows: Sequence[KnownRow], names: Sequence[str], path: Path, given: GivenOptions) -> None:
    """Refuse known labels that name no graph, or an unknown one, where there are several."""
    for row in rows if len(names) > 1 else ():
        if row.graph not in names:
            raise GraphError(
                f"{given.known}, line {row.line}: "
                + (
                    "there are several graphs, so known labels need a column graph with the names of their files."
                    if row.graph is None
                    else f"there is no graph {row.graph!r} in {path}. Correct the name."
                )
            )


def state_names(model: NodeClassifier) -> list[str]:
    """Names of the states, or their numbers if they have no names."""
    return list(model.label_names_ or map(str, range(model.shape_.num_states)))


def label_columns(
    graph: Data, model: NodeClassifier, labels: Tensor, probabilities: Tensor, marginals: bool
) -> Columns:
    """One row for each node, and for each of its tasks if there are several.

    Args:
        graph: has the names of the nodes, if they have any.
        model: has the names of states and tasks.
        labels: [tasks, nodes], -1 for none.
        probabilities: [tasks, nodes, states].
        marginals: give the probability of every state.
    """
    nodes = graph.node_names if "node_names" in graph else list(range(labels.shape[1]))
    names = state_names(model)
    columns: Columns = {}
    if len(labels) > 1:
        tasks = list(model.task_names or range(len(labels)))
        columns["node"] = [node for node in nodes for _ in tasks]
        columns["task"] = [task for _ in nodes for task in tasks]
    else:
        columns["node"] = list(nodes)
        columns |= {"token": list(graph.tokens)} if has_tokens(graph) else {}
    states = labels.t().flatten()
    flat = probabilities.transpose(0, 1).reshape(-1, probabilities.shape[-1])
    columns["label"] = [names[state] if state >= 0 else None for state in states.tolist()]
    if marginals:
        return columns | {f"p({name})": _rounded(flat[:, state]) for state, name in enumerate(names)}
    own = flat.gather(1, states[:, None].clamp_min(0))[:, 0]
    given = zip(_rounded(own), states.tolist(), strict=True)
    return columns | {"probability": [value if state >= 0 else None for value, state in given]}


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 6) for value in values.double().tolist()]
