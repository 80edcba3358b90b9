"""`accord explain`: why a node of a graph has its label."""

import json
from pathlib import Path

from accord.app.console import in_command_line_words
from accord.app.knowledge import GivenOptions
from accord.app.runs import Run
from accord.app.sources import read_for
from accord.datasets import TableMapping, graph_entries
from accord.errors import GraphError, OptionError
from accord.estimator import Explanation, NodeClassifier


def explain_run(
    run: Run,
    path: Path,
    node: str,
    task: str | None,
    given: GivenOptions,
    without: str | None,
    mapping: TableMapping | None = None,
) -> Explanation:
    """Explain the label of a node.

    Args:
        run: a finished run, or the folder of a saved model.
        path: a graph, not a folder of graphs.
        node: the node's id, or its number where nodes have no ids.
        task: name or number of the task, where there are several.
        given: what is known about the graph.
        without: a neighbour to leave out, or None.
        mapping: which tables and columns hold what.
    """
    model = NodeClassifier.load(run.path)
    entries = graph_entries(path, mapping)
    if len(entries) > 1:
        raise OptionError(f"{path}: holds {len(entries)} graphs. Give one of them, such as {entries[0]}.")
    graphs = read_for(model, path, mapping, given.reads_labels)
    if len(graphs) > 1:
        raise OptionError(f"{path}: holds {len(graphs)} graphs. Write the one to explain to a file of its own.")
    graph = graphs[0]
    chosen: int | str = 0 if task is None else int(task) if task.isdecimal() else task
    ids: list[str] | None = graph.node_names if "node_names" in graph else None
    try:
        found = model.explain(graph, _node(node, ids), chosen, **given.arguments(model, graph, given.rows()))
        return found if without is None else found.without(_node(without, ids))
    except GraphError as error:
        raise GraphError(f"{entries[0]}: {in_command_line_words(error)}") from error


def _node(text: str, ids: list[str] | None) -> int | str:
    """A node's id as text, or its number in a file without ids."""
    return int(text) if ids is None and text.isdecimal() else text


def to_json(explanation: Explanation) -> str:
    """The explanation, and the one before a change, as json."""
    content = explanation.to_json()
    if explanation.before is not None:
        content["before"] = explanation.before.to_json()
    return json.dumps(content, indent=1, allow_nan=False) + "\n"
