"""What each part of a model says about graphs: the node network, the edge network, and the field made of both."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import GraphError
from accord.estimator import NodeClassifier
from accord.graphs import GraphBatch, Topology
from accord.methods import NetworkPair

CHUNK_NUMBERS = 2**25  # of edge tables solved at once; the sweeps hold a few times as much
JOINT = {
    "spn": "SPN",
    "crf": "CRF",
    "gmnn": "GMNN",
    "smooth": "smoothed GNN",
}  # the whole model, by method
TITLES = {"gnn": "GNN", "edge": "edge GNN", **JOINT}
OWN_TITLES = {"crf": {"gnn": "node scores alone", "edge": "edge scores alone"}}  # parts that were never trained alone


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labels and probabilities of each part, for graphs side by side."""

    topology: Topology
    truth: Tensor | None  # [tasks, nodes], -1 where unknown
    labels: dict[str, Tensor]  # part -> [tasks, nodes]
    probabilities: dict[str, Tensor]  # part -> [tasks, nodes, states]


def label_graphs(model: NodeClassifier, graphs: Sequence[Data]) -> Labelled:
    """Let each part of a trained model label these graphs."""
    pieces = [_label(model, chunk) for chunk in _chunks(model, graphs)]
    whole = GraphBatch.collate(list(graphs))
    return Labelled(
        whole.topology,
        None if whole.y is None else _truth(model, whole.y),
        {name: torch.cat([labels[name] for labels, _ in pieces], 1) for name in pieces[0][0]},
        {name: torch.cat([known[name] for _, known in pieces], 1) for name in pieces[0][1]},
    )


def joint_part(parts: Iterable[str]) -> str | None:
    """The one that stands for the whole model; None where that is a node network alone."""
    return next((name for name in parts if name in JOINT), None)


def _label(model: NodeClassifier, graphs: list[Data]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    batch = model.collate(graphs)
    alone = model.model_.node_logits(batch).softmax(-1)
    probabilities = {"gnn": alone}
    labels = {"gnn": alone.argmax(-1)}
    if isinstance(model.model_, NetworkPair):
        probabilities["edge"] = edge_marginals(model.model_.edge_logits(batch), batch.topology)
        labels["edge"] = probabilities["edge"].argmax(-1)
    if model.method in JOINT:
        probabilities[model.method] = model.model_.beliefs(batch, "sum").node.exp()
        labels[model.method] = model.model_.labels(batch)
    return (
        {name: value.cpu() for name, value in labels.items()},
        {name: value.cpu() for name, value in probabilities.items()},
    )


def edge_marginals(tables: Tensor, topology: Topology) -> Tensor:
    """What the edge network alone says of nodes: its tables' own sums, averaged as logs over a node's edges.

    Args:
        tables: [R, edges, states, states], scores.
        topology: the graphs.

    Returns:
        [R, nodes, states], probabilities; a node without edges knows nothing: all states alike.
    """
    logs = tables.flatten(-2).log_softmax(-1).view_as(tables)
    source, target = topology.edge_index
    total = logs.new_zeros(logs.shape[0], topology.num_nodes, logs.shape[-1])
    total.index_add_(1, source, logs.logsumexp(-1)).index_add_(1, target, logs.logsumexp(-2))
    degree = torch.bincount(topology.edge_index.flatten(), minlength=topology.num_nodes)
    return (total / degree.clamp_min(1)[:, None]).softmax(-1)


def _truth(model: NodeClassifier, y: Tensor) -> Tensor:
    tasks = 1 if y.dim() == 1 else y.shape[1]
    if tasks != model.shape_.num_tasks:
        raise GraphError(
            f"The graphs have {tasks} labels a node, the model was trained on {model.shape_.num_tasks}. Give graphs "
            "with the same labels."
        )
    highest = int(y.max()) if y.numel() else -1
    if highest >= model.shape_.num_states:
        raise GraphError(
            f"A label is {highest}, but the model knows states 0 to {model.shape_.num_states - 1} only. Mark labels it "
            "cannot know as missing (-1)."
        )
    return y[None] if y.dim() == 1 else y.t()


def _chunks(model: NodeClassifier, graphs: Sequence[Data]) -> Iterator[list[Data]]:
    """Portions of the graphs that are solved together."""
    chunk: list[Data] = []
    size = 0
    for graph in graphs:
        columns = 0 if graph.edge_index is None else int(graph.edge_index.shape[1])
        numbers = model.shape_.num_tasks * model.shape_.num_states**2 * max(columns, 1)
        if chunk and size + numbers > CHUNK_NUMBERS:
            yield chunk
            chunk, size = [], 0
        chunk.append(graph)
        size += numbers
    yield chunk
