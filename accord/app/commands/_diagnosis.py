"""A diagnosis of labels as columns of a table, in words, and as a section of the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch_geometric.data import Data

from accord.drawing import page
from accord.evaluation import Diagnosis

SHOWN_EDGES = 5  # in words
SHOWN_GRAPHS = 8  # that did not converge


def diagnosis_columns(found: Diagnosis, states: Sequence[str]) -> dict[str, list[object]]:
    """Columns beside the labels: one row for each node, and for each of its tasks.

    Args:
        found: the diagnosis of one graph.
        states: names of the states.
    """
    graph = found.topology.graph
    return {
        "gnn": [states[state] for state in found.alone.t().flatten().tolist()],
        "disagrees": found.disagrees.t().flatten().int().tolist(),
        "entropy": [round(value, 6) for value in found.entropy.t().flatten().tolist()],
        "unlikely_edges": found.unlikely_edges_of_nodes().t().flatten().tolist(),
        "converged": found.converged[:, graph].t().flatten().int().tolist(),
    }


def diagnosis_notes(found: Diagnosis, graph: Data, states: Sequence[str], name: str | None) -> list[str]:
    """The diagnosis of one graph in words.

    Args:
        found: the diagnosis.
        graph: has the names of the nodes, if they have any.
        states: names of the states.
        name: of the graph, where there are several.
    """
    total, start = found.summary(), "" if name is None else f"{name}: "
    notes = [
        f"{start}{total.disagreeing} of {total.nodes} labels differ from the node network's; "
        f"{total.unlikely} of {total.edges} edges have labels that are unlikely together"
        + (f"; mean entropy {total.entropy:.3f} nats." if total.entropy is not None else ".")
    ]
    if total.calibration_error is not None:
        notes.append(f"{start}Calibration error on labelled nodes: {total.calibration_error:.3f}.")
    nodes = graph.node_names if "node_names" in graph else range(len(graph.x))
    order = found.lift.flatten().argsort()[:SHOWN_EDGES].tolist()
    for place in order:
        task, edge = divmod(place, found.lift.shape[1])
        if not bool(found.unlikely[task, edge]):
            break
        source, target = found.topology.edge_index[:, edge].tolist()
        labels = (states[int(found.labels[task, end])] for end in (source, target))
        notes.append(
            f"{start}  unlikely: {nodes[source]} ({next(labels)}) - {nodes[target]} ({next(labels)}), lift "
            f"{float(found.lift[task, edge]):.2f} nats"
        )
    return notes


def diagnosis_section(summary: Mapping[str, Any] | None) -> str:
    """The section of a report, from the values of a `DiagnosisSummary`; empty for runs of earlier versions."""
    if not summary:
        return ""
    rough = summary["unconverged"]
    listed = ", ".join(map(str, rough[:SHOWN_GRAPHS])) + (", .." if len(rough) > SHOWN_GRAPHS else "")
    rows = [
        ["labels that differ from the node network's", _share(summary["disagreeing"], summary["nodes"])],
        ["of these, joint labels that are right", _percent(summary["joint_right"])],
        ["of these, the node network's that are right", _percent(summary["alone_right"])],
        ["edges whose labels are unlikely together", _share(summary["unlikely"], summary["edges"])],
        ["mean entropy of a node, in nats", "-" if summary["entropy"] is None else f"{summary['entropy']:.3f}"],
        ["graphs without convergence", _share(len(rough), summary["graphs"]) + (f": {listed}" if rough else "")],
        [
            "calibration error",
            "-" if summary["calibration_error"] is None else f"{summary['calibration_error']:.3f}",
        ],
    ]
    caption = (
        "Of the test graphs. Labels of an edge are unlikely together if, by the edge's own table, they occur together "
        "less than half as often as by chance. Entropy is 0 where a label is certain. Convergence is that of belief "
        "propagation; without it, probabilities are rough. `accord predict --diagnose` tells the same of each node of "
        "a graph."
    )
    return page.section("What is doubtful", page.table(["test graphs"], rows, -1), page.caption(caption))


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.1%})" if whole else "")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
