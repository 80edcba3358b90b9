"""Better labels where beliefs cannot decide: a search with a fixed amount of work.

In a symmetric field, such as a glass without evidence, all beliefs are uniform, and the best state of each node says
nothing. Such graphs are labelled by the same search as in `maximise`, for an amount of work that depends on their size
only, so that decoding never depends on time.
"""

import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native
from accord.inference.search._ragged import without_padding

TIE = 1e-6  # nats between a node's best two beliefs; less is rounding
WORK = 5e-5  # seconds of work for each node of a graph, on a usual machine; see native/maximise.cpp for the most
GAIN = 1e-9  # least relative gain of score: ties keep the labels that beliefs chose
UNLIMITED = 1e9  # seconds: the amount of work ends the search
SEED = 0


def search_undecided(field: PairwiseField, node: Tensor, edge: Tensor, beliefs: Tensor, labels: Tensor) -> Tensor:
    """Labels [R, nodes], replaced in graphs where a node on a loop is undecided and the search finds a higher score.

    Args:
        field: the field.
        node: its node potentials [R, nodes, states].
        edge: its edge potentials [R, edges, states, states].
        beliefs: [R, nodes, states].
        labels: [R, nodes], as decoded from the beliefs.
    """
    undecided = _undecided(field, beliefs)
    if not bool(undecided.any()):
        return labels
    try:
        _native.load()
    except BuildError:
        return labels  # propagate has already warned that there is no compiler
    source = field.edge_index[0]
    before = field.score(labels.reshape(*field.replicas, -1)).reshape(undecided.shape).double()
    result = labels.clone()
    for replica in undecided.any(-1).nonzero().flatten().tolist():
        inside = undecided[replica][field.graph]
        kept = inside[source]
        position = inside.cumsum(0) - 1
        model = without_padding(
            position[field.edge_index[:, kept]],
            node[replica : replica + 1, inside],
            edge[replica : replica + 1, kept],
            field.graph[inside],
        )
        found = model.labels(_native.solve(model, UNLIMITED, SEED, work=WORK).labels)
        result[replica, inside] = torch.from_numpy(found).to(labels.device)
    after = field.score(result.clamp_min(0).reshape(*field.replicas, -1)).reshape(undecided.shape).double()
    missing = torch.zeros_like(after).index_add(-1, field.graph, (result < 0).to(after.dtype)) > 0
    better = undecided & ~missing & ((after > before + GAIN * before.abs()) | (before == -torch.inf) & (after > before))
    return torch.where(better[:, field.graph], result, labels)


def _undecided(field: PairwiseField, beliefs: Tensor) -> Tensor:
    """Graphs [R, graphs] with a node on a loop, or between loops, whose best two states have the same belief."""
    if beliefs.shape[-1] < 2 or not bool(field.peeling.core_edge.any()):
        return torch.zeros(beliefs.shape[0], field.num_graphs, dtype=torch.bool, device=beliefs.device)
    first, second = beliefs.topk(2, dim=-1).values.unbind(-1)
    tied = field.peeling.core & (first - second <= TIE)  # -inf twice gives NaN, which is no tie
    count = torch.zeros(beliefs.shape[0], field.num_graphs, dtype=torch.long, device=beliefs.device)
    return count.index_add(-1, field.graph, tied.long()) > 0
