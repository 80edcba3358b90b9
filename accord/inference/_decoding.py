"""From beliefs to one labelling (Eq. 13): exact on trees, improved by local search on loops.

1. Fold: leaves are removed round by round, and each adds the best score of its subtree to its parent's potential. The
   nodes that remain are the core.
2. Core: each node takes its best state; then single nodes change state while that raises the joint score.
3. Unfold: from the core outwards, each leaf takes its best state given its parent's.

The core of a tree is a single node, so trees are decoded exactly. A change that removes a forbidden pair is always
made, whatever it costs in score. If forbidden pairs remain, their component is solved exactly by elimination.
"""

import numpy as np
import scipy.sparse as sparse
import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from accord.errors import InfeasibleError, TooLargeError
from accord.field import PairwiseField
from accord.graphs._peeling import PeelingRound
from accord.inference._extended import has_infinity
from accord.inference._polishing import polish
from accord.inference.exact import eliminate_beliefs


def decode(field: PairwiseField, beliefs: Tensor) -> Tensor:
    """Labels [*replicas, nodes] from node beliefs [*replicas, nodes, states]."""
    with torch.no_grad():
        node, edge = field.expanded()
        folded = _fold(field, node, edge)
        barred = has_infinity(edge)
        labels = beliefs.reshape(node.shape).argmax(-1)
        labels = polish(field, folded, edge, barred, labels)
        labels = _unfold(field, folded, edge, labels)
        if barred or has_infinity(node):
            score = field.score(labels.reshape(*field.replicas, field.num_nodes)).reshape(node.shape[0], -1)
            for replica in (score == -torch.inf).any(-1).nonzero().flatten().tolist():
                labels[replica] = _repair(field.edge_index, node[replica], edge[replica], labels[replica])
        return labels.reshape(*field.replicas, field.num_nodes)


def _leaf_tables(edge: Tensor, round_: PeelingRound) -> Tensor:
    """Tables of a round's edges as [R, leaves, leaf states, parent states]."""
    table = edge[:, round_.edge]
    return torch.where(round_.leaf_is_source[:, None, None], table, table.transpose(-1, -2))


def _fold(field: PairwiseField, node: Tensor, edge: Tensor) -> Tensor:
    """Node potentials plus the best score of the subtrees that were peeled off each node."""
    folded = node.clone()
    for round_ in field.peeling.rounds:
        best = (folded[:, round_.leaf, :, None] + _leaf_tables(edge, round_)).amax(-2)
        folded.index_add_(-2, round_.parent, best)
    return folded


def _unfold(field: PairwiseField, folded: Tensor, edge: Tensor, labels: Tensor) -> Tensor:
    """Give every peeled leaf its best state given its parent's, from the core outwards."""
    for round_ in reversed(field.peeling.rounds):
        parent = labels[:, round_.parent][..., None, None].expand(-1, -1, field.num_states, 1)
        column = _leaf_tables(edge, round_).gather(-1, parent)[..., 0]
        labels[:, round_.leaf] = (folded[:, round_.leaf] + column).argmax(-1)
    return labels


def _repair(edge_index: Tensor, node: Tensor, edge: Tensor, labels: Tensor) -> Tensor:
    """Solve exactly, by elimination, every component whose labels hold a forbidden state or pair."""
    source, target = edge_index
    broken = node.gather(-1, labels[:, None])[:, 0] == -torch.inf
    bad_edge = edge[torch.arange(edge.shape[0]), labels[source], labels[target]] == -torch.inf
    broken[source[bad_edge]] = True
    links = sparse.coo_matrix(
        (np.ones(source.numel()), (source.cpu().numpy(), target.cpu().numpy())), shape=(node.shape[0],) * 2
    )
    component = torch.from_numpy(connected_components(links, directed=False)[1].astype(np.int64)).to(labels.device)
    for name in component[broken].unique().tolist():
        inside = component == name
        kept = inside[source]
        position = inside.cumsum(0) - 1
        part = PairwiseField(position[edge_index[:, kept]], node[inside], edge[kept])
        try:
            labels[inside] = eliminate_beliefs(part, semiring="max").decode()
        except TooLargeError as error:
            raise InfeasibleError(
                f"decode: no labelling without forbidden states or pairs was found for the component of node "
                f"{int(inside.nonzero()[0])}, and it is too wide to search exactly ({error}). Relax a constraint."
            ) from error
        except InfeasibleError as error:
            raise InfeasibleError(
                f"decode: the component of node {int(inside.nonzero()[0])} ({int(inside.sum())} nodes) has no "
                "labelling without forbidden states or pairs. Relax a clamped label or a forbidden pair there."
            ) from error
    return labels
