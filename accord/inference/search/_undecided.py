"""Better labels where beliefs cannot decide: a search with a fixed amount of work.

In a symmetric field, such as a glass without evidence, all beliefs are uniform, and the best state of each node says
nothing. Where messages still oscillate after all sweeps, beliefs say little more. The loops of such graphs are labelled
by the same search as in `maximise`, for an amount of work that depends on their size only.
"""

import numpy as np
import torch
from torch import Tensor

from accord.field import PairwiseField
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import _native
from accord.inference.search._fixed import SEED, UNLIMITED, WAYS, WORK
from accord.inference.search._native import MOST
from accord.inference.search._ragged import without_padding

TIE = 1e-6  # nats between a node's best two beliefs; less is rounding
GAIN = 1e-9  # least relative gain of score: ties keep the labels that beliefs chose
MOST_UNSETTLED = 0.01  # seconds of work for a graph that did not converge: about what its sweeps and `polish` take
MOST_EDGES, MOST_ENTRIES = 2**14, 2**20  # of such a graph's loops; with more, there is little time left after preparing


def search_undecided(
    field: PairwiseField, node: Tensor, edge: Tensor, beliefs: Tensor, labels: Tensor, unsettled: Tensor | None
) -> Tensor:
    """Labels [R, nodes], replaced in graphs with loops that are undecided, where the search finds a higher score.

    Only nodes on loops, or between loops, are searched; labels of the trees that hang on them are for the caller.

    Args:
        field: the field.
        node: its node potentials, with what trees add to them [R, nodes, states].
        edge: its edge potentials [R, edges, states, states].
        beliefs: [R, nodes, states].
        labels: [R, nodes], as decoded from the beliefs.
        unsettled: [*replicas, graphs]: where messages did not converge; None for nowhere.
    """
    core_edge = field.peeling.core_edge
    if beliefs.shape[-1] < 2 or not bool(core_edge.any()):
        return labels
    ends = field.edge_index[:, core_edge]
    looped = torch.zeros_like(field.peeling.core).index_fill_(0, ends.flatten(), True)
    first, second = beliefs.topk(2, dim=-1).values.unbind(-1)
    tied = looped & (first - second <= TIE)  # -inf twice gives NaN, which is no tie
    searched = {MOST: _any_of_graph(tied, field)}
    if unsettled is not None:
        others = unsettled.reshape(len(labels), -1) & _searchable(field, ends[0])
        searched[MOST_UNSETTLED] = others & ~searched[MOST]
    if not any(bool(graphs.any()) for graphs in searched.values()):
        return labels
    try:
        _native.load()
    except BuildError:
        return labels  # propagate has already warned that there is no compiler
    # A node without any state is reported by the caller.
    hopeless = _any_of_graph(looped & (node == -torch.inf).all(-1), field)
    result = labels.clone()
    for most, graphs in searched.items():
        for replica in (graphs & ~hopeless).any(-1).nonzero().flatten().tolist():
            inside = (looped & (graphs & ~hopeless)[replica, field.graph]).nonzero().flatten()
            own = node[replica], edge[replica], labels[replica, inside], tied[replica, inside]
            result[replica, inside] = _searched(field, *own, inside, most)
    return result


def _searched(
    field: PairwiseField, node: Tensor, edge: Tensor, labels: Tensor, tied: Tensor, inside: Tensor, most: float
) -> Tensor:
    """Labels of the nodes `inside`, all that are searched, better ones where they are found.

    The search begins with the labels, except those of tied nodes, which say nothing. A graph takes `most` seconds of
    work at most.
    """
    position = torch.full_like(field.graph, -1).index_copy_(0, inside, torch.arange(len(inside)).to(inside))
    kept = field.peeling.core_edge & (position[field.edge_index[0]] >= 0)
    model = without_padding(
        position[field.edge_index[:, kept]], node[None, inside], edge[None, kept], field.graph[inside]
    )
    own = model.places(labels.cpu().numpy())
    start = np.where(tied.cpu().numpy(), -1, own)
    found = _native.solve(model, UNLIMITED, SEED, work=WORK, ways=WAYS, start=start, most=most).labels
    before, after = (model.scores(chosen, model.graph, field.num_graphs) for chosen in (own, found))
    slack = GAIN * np.abs(np.where(before == -np.inf, 0.0, before))
    better = torch.from_numpy((after > before + slack)[model.graph]).to(labels.device)
    return torch.where(better, torch.from_numpy(model.labels(found)).to(labels.device), labels)


def _searchable(field: PairwiseField, source: Tensor) -> Tensor:
    """Graphs [graphs] with loops, which are not too large; of all edges of loops one end is given."""
    edges = torch.bincount(field.graph[source], minlength=field.num_graphs)
    return (edges > 0) & (edges <= min(MOST_EDGES, MOST_ENTRIES // field.num_states**2))


def _any_of_graph(nodes: Tensor, field: PairwiseField) -> Tensor:
    """Graphs [R, graphs] of which some of the nodes [R, nodes] is true."""
    count = torch.zeros(len(nodes), field.num_graphs, dtype=torch.long, device=nodes.device)
    return count.index_add(-1, field.graph, nodes.long()) > 0
