"""`accord predict`: labels for new graphs, as csv, json or parquet."""

import csv
import io
import json
import warnings
from collections.abc import Sequence
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from accord._files import write_text
from accord.app.commands._diagnosis import diagnosis_columns, diagnosis_notes
from accord.app.console import in_command_line_words
from accord.app.knowledge import GivenOptions, KnownRow
from accord.app.runs import Run
from accord.app.settings import threshold
from accord.app.sources import read_for
from accord.datasets import TableMapping, sequence_suffix, write_sentences
from accord.errors import ConvergenceWarning, GraphError, InfeasibleError, OptionError
from accord.estimator import NodeClassifier
from accord.evaluation import Answers, Diagnosis
from accord.graphs import has_tokens

Columns = dict[str, list[Any]]


def predict_graphs(
    run: Run,
    path: Path,
    marginals: bool = False,
    given: GivenOptions | None = None,
    diagnose: bool = False,
    limit: str | None = None,
    precision: float | None = None,
    mapping: TableMapping | None = None,
) -> tuple[Columns, list[str]]:
    """Label one graph, or every graph of a folder; labels in the files are read only where they are known labels.

    Args:
        run: a finished run, or the folder of a saved model.
        path: a graph, or a folder of graphs.
        marginals: give the probability of every state, not only of the label.
        given: what is known about the graphs.
        diagnose: add columns with what is doubtful.
        limit: thresholds of states, such as "fraud=0.3"; None for none.
        precision: leave labels empty where this precision was not reached on validation data; None labels every node.
        mapping: which tables and columns hold what.

    Returns:
        Columns: graph (if there are several), node, task (if there are several), label, probabilities, and those of a
        diagnosis; and a diagnosis of each graph in words.
    """
    if diagnose and (limit is not None or precision is not None):
        raise OptionError("--diagnose is about joint labels. Leave it out, or leave out --threshold and --precision.")
    model, given = NodeClassifier.load(run.path), given or GivenOptions()
    rows = given.rows()
    graphs = read_for(model, path, mapping, given.reads_labels)
    _check_graph_column(rows, [graph.graph_name for graph in graphs], path, given)
    limits = None if limit is None else threshold(limit, model.label_names_)
    columns: Columns = {}
    notes: list[str] = []
    for graph in graphs:
        name = graph.graph_name if len(graphs) > 1 else None
        entry = path if name is None else path / name
        try:
            arguments = given.arguments(model, graph, rows, name)
            found = model.diagnose(graph, **arguments) if diagnose else model.answers(graph, **arguments)
            chosen = None
            if limits is not None or precision is not None:
                chosen = model.predict(graph, threshold=limits, precision=precision, **arguments)
        except (GraphError, InfeasibleError) as error:
            raise type(error)(f"{entry}: {in_command_line_words(error)}") from error
        residual = found.residual if isinstance(found, Answers) else found.largest_residual
        if residual is not None:
            warnings.warn(
                f"{entry}: belief propagation did not converge (last change of a log-message {residual:.1e}); the "
                "probabilities are rough.",
                ConvergenceWarning,
                stacklevel=2,
            )
        if isinstance(found, Answers):
            labels, probabilities = found.labels[found.whole], found.probabilities[found.whole]
        else:
            labels, probabilities = found.labels, found.probabilities
        labels = labels if chosen is None else chosen.reshape(graph.num_nodes, -1).t()
        own = label_columns(graph, model, labels, probabilities, marginals)
        if isinstance(found, Diagnosis):
            own |= diagnosis_columns(found, state_names(model))
            notes += diagnosis_notes(found, graph, state_names(model), name)
        if name is not None:
            own = {"graph": [name] * len(own["node"])} | own
        for column, values in own.items():
            columns.setdefault(column, []).extend(values)
    return columns, notes


def _check_graph_column(rows: Sequence[KnownRow], names: Sequence[str], path: Path, given: GivenOptions) -> None:
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


def write_columns(columns: Columns, path: Path) -> None:
    """Write a table in the format of the path's suffix."""
    sentences = sequence_suffix(path) is not None
    if path.suffix not in WRITER_OF_SUFFIX and not sentences:
        known = ", ".join([*WRITER_OF_SUFFIX, ".conll", ".tsv"])
        raise OptionError(f"{path}: tables cannot be written to {path.suffix or 'such'} files. Choose {known}.")
    if sentences and "token" not in columns:
        raise OptionError(f"{path}: the graphs have no words, so there are no sentences to write. Choose .csv.")
    path.parent.mkdir(parents=True, exist_ok=True)
    (_write_sentences if sentences else WRITER_OF_SUFFIX[path.suffix])(columns, path)


def to_csv(columns: Columns) -> str:
    """A table as csv text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return buffer.getvalue()


def _write_csv(columns: Columns, path: Path) -> None:
    write_text(path, to_csv(columns))


def _write_sentences(columns: Columns, path: Path) -> None:
    graph = columns.get("graph", [None] * len(columns["token"]))
    rows = list(zip(graph, columns["token"], columns["label"], strict=True))
    sentences = [list(own) for _, own in groupby(rows, lambda row: row[0])]
    write_sentences([([row[1] for row in own], [row[2] or "" for row in own]) for own in sentences], path)


def _write_json(columns: Columns, path: Path) -> None:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_text(path, json.dumps(rows, indent=1) + "\n")


def _write_parquet(columns: Columns, path: Path) -> None:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise OptionError(
            f"{path}: writing parquet needs the package pyarrow. Install it (pip install pyarrow), or choose .csv."
        ) from error
    parquet.write_table(pyarrow.table(columns), path)


WRITER_OF_SUFFIX = {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}
