"""From beliefs to one labelling (Eq. 13): exact on trees, improved by local search on loops.

1. Fold: leaves are removed round by round, and each adds the best score of its subtree to its parent's potential. The
   nodes that remain are the core.
2. Core: each node takes its best state; then single nodes change state while that raises the joint score. Graphs whose
   beliefs leave a node of the core undecided, such as symmetric ones, or did not converge, are searched with a fixed
   amount of work; labels change only for a higher score.
3. Unfold: from the core outwards, each leaf takes its best state given its parent's.

The core of a tree is a single node, so trees are decoded exactly; forests by a compiled kernel, where it is available.
A change that removes a forbidden pair is always made, whatever it costs in score. If forbidden pairs remain, their
component is solved exactly by elimination, or where it is too wide for that, by the compiled search with a fixed amount
of work. Without a compiler, a plain search finds a labelling, which is then improved in the same way.
"""

import numpy as np
import torch
from torch import Tensor

from accord.errors import InfeasibleError, TooLargeError
from accord.field import PairwiseField
from accord.graphs.structure._peeling import PeelingRound
from accord.inference._extended import has_infinity
from accord.inference.decoding._feasibility import find_labels, possible_states
from accord.inference.decoding._polishing import polish
from accord.inference.exact import eliminate_beliefs
from accord.inference.kernels.cpu._build import BuildError
from accord.inference.search import search_allowed, search_undecided
from accord.inference.trees import Pairs, best_labels


def decode(field: PairwiseField, beliefs: Tensor, unsettled: Tensor | None = None) -> Tensor:
    """Labels [*replicas, nodes] from node beliefs [*replicas, nodes, states].

    Args:
        field: the field.
        beliefs: of its nodes.
        unsettled: [*replicas, graphs]: graphs whose messages did not converge; None for none.
    """
    with torch.no_grad():
        node, edge = field.expanded()
        best = best_labels(Pairs.of(field, node, edge), beliefs.reshape(node.shape))
        if best is not None:
            return best.reshape(*field.replicas, field.num_nodes)
        folded = _fold(field, node, edge)
        barred = has_infinity(edge)
        beliefs = beliefs.reshape(node.shape)
        labels = polish(field, folded, edge, barred, beliefs.argmax(-1))
        labels = search_undecided(field, folded, edge, beliefs, labels, unsettled)
        labels = _unfold(field, folded, edge, labels)
        if barred or has_infinity(node):
            score = field.score(labels.reshape(*field.replicas, field.num_nodes)).reshape(node.shape[0], -1)
            for replica in (score == -torch.inf).any(-1).nonzero().flatten().tolist():
                own = node[replica], edge[replica], labels[replica], beliefs[replica]
                labels[replica] = _repair(field.edge_index, *own)
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


def _repair(edge_index: Tensor, node: Tensor, edge: Tensor, labels: Tensor, beliefs: Tensor) -> Tensor:
    """Solve every component whose labels hold a forbidden state or pair."""
    import scipy.sparse as sparse  # scipy is slow to load, and most calls do not need it
    from scipy.sparse.csgraph import connected_components

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
        members = inside.nonzero().flatten()
        try:
            labels[inside] = _solve_component(part, labels[inside], beliefs[inside])
        except InfeasibleError as error:
            size = f"the component of node {int(members[0])} ({len(members)} nodes)"
            nodes = members[error.nodes].tolist() if error.nodes else members.tolist()
            reason = (
                f"{size} has no labelling without forbidden states or pairs."
                if error.proved
                else f"no labelling without forbidden states or pairs was found for {size}; there may be one. It is "
                "too wide to be solved exactly, and the search reached its limit."
            )
            raise InfeasibleError(
                f"decode: {reason} Relax a clamped label or a forbidden pair there.", nodes, error.proved
            ) from error
    return labels


def _solve_component(part: PairwiseField, labels: Tensor, beliefs: Tensor) -> Tensor:
    """Labels of a component without forbidden states or pairs: the best ones, or any that were found, improved."""
    try:
        return eliminate_beliefs(part, semiring="max").decode()
    except TooLargeError:
        possible_states(part)  # of contradictions that it finds it tells the cause
    try:
        return search_allowed(part, labels)
    except BuildError:
        labels = find_labels(part, beliefs)[None]
    node, edge = part.expanded()
    folded = _fold(part, node, edge)
    return _unfold(part, folded, edge, polish(part, folded, edge, True, labels))[0]
