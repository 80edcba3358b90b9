"""From beliefs to one labelling of a graph that is in parts, by the steps of `accord.inference.decode`.

Leaves are folded into their parents round by round, nodes of the core change while that raises the joint score, and
leaves are labelled from the core outwards. After each step ghosts get what their owners have. So all labels are those
that one process would give, with two exceptions, which need the whole graph in one place: graphs whose beliefs leave a
node undecided or did not converge are not searched further, and labels that hold a forbidden pair are refused, not
repaired.
"""

import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.distributed._together import total
from accord.distributed.decoding._peeling import to_nodes_first
from accord.errors import InfeasibleError
from accord.field import PairwiseField
from accord.inference._extended import has_infinity
from accord.inference.decoding._decoding import _leaf_tables
from accord.inference.decoding._polishing import MAX_ROUNDS, SPREAD, _Arcs, _best_state, _core_pairs


def decode_part(field: PairwiseField, part: Part, beliefs: Tensor) -> Tensor:
    """Labels [*replicas, own + ghosts] from beliefs [*replicas, own + ghosts, states]; called by all together.

    Args:
        field: of own nodes, ghosts and their edges, with the peeling of the whole graph.
        part: the part.
        beliefs: those of ghosts are not read.
    """
    with torch.no_grad():
        node, edge = field.expanded()
        folded = _fold(field, part, filled(node, part), edge)
        labels = filled(beliefs.reshape(node.shape).argmax(-1), part)
        labels = _polish(field, part, folded, edge, labels)
        labels = _unfold(field, part, folded, edge, labels)
        _check_allowed(field, part, labels)
        return labels.reshape(*field.replicas, field.num_nodes)


def filled(values: Tensor, part: Part) -> Tensor:
    """Values [R, nodes, ...] with those of ghosts as their owners have them."""
    return part.halo.exchange(to_nodes_first(values)).transpose(0, 1)


def _fold(field: PairwiseField, part: Part, folded: Tensor, edge: Tensor) -> Tensor:
    """Node potentials plus the best score of the subtrees that were peeled off each node."""
    for round_ in field.peeling.rounds:
        best = (folded[:, round_.leaf, :, None] + _leaf_tables(edge, round_)).amax(-2)
        folded = filled(folded.index_add(-2, round_.parent, best), part)
    return folded


def _unfold(field: PairwiseField, part: Part, folded: Tensor, edge: Tensor, labels: Tensor) -> Tensor:
    """Give every peeled leaf its best state given its parent's, from the core outwards."""
    for round_ in reversed(field.peeling.rounds):
        parent = labels[:, round_.parent][..., None, None].expand(-1, -1, field.num_states, 1)
        column = _leaf_tables(edge, round_).gather(-1, parent)[..., 0]
        labels[:, round_.leaf] = (folded[:, round_.leaf] + column).argmax(-1)
        labels = filled(labels, part)
    return labels


def _polish(field: PairwiseField, part: Part, evidence: Tensor, edge: Tensor, labels: Tensor) -> Tensor:
    """Improved labels [R, nodes], by the same changes in the same rounds as in one process."""
    core = field.peeling.core.nonzero().flatten()
    pairs = _core_pairs(field, edge, has_infinity(edge))
    arcs = _Arcs.between(pairs.edge_index, core.numel())
    priority = part.nodes.to(core.device)[core] * SPREAD
    whole = labels.clone()

    def of_owners(values: Tensor) -> Tensor:  # [places], one for each replica and node of the core
        whole[:, core] = values.view(len(labels), -1)
        return filled(whole, part)[:, core].flatten()

    def anybody(waiting: Tensor) -> bool:
        return bool(total(torch.tensor(waiting.numel()), part.halo.group))

    current = labels[:, core].flatten()
    rounds = MAX_ROUNDS + part.num_nodes
    while rounds > 0:
        local = pairs.scores(evidence[:, core], current.view(len(labels), -1))
        wanted = of_owners(_best_state(local, current))
        waiting = (wanted != current).nonzero().flatten()
        if not anybody(waiting):
            break
        while anybody(waiting) and rounds > 0:
            blocked = arcs.blocked(waiting, wanted, current, priority) if core.numel() else waiting.bool()
            # A ghost may be blocked by a node that is not here, so its owner says whether it changes.
            changed = current.clone()
            changed[waiting[~blocked]] = wanted[waiting[~blocked]]
            changed = of_owners(changed)
            moving = (changed != current).nonzero().flatten()
            affected = pairs.replace(local, arcs, moving, current, changed) if core.numel() else moving
            current = changed
            wanted[affected] = _best_state(local.rows(affected), current[affected])
            wanted = of_owners(wanted)
            waiting = (wanted != current).nonzero().flatten()
            rounds -= 1
    labels[:, core] = current.view(len(labels), -1)
    return labels


def _check_allowed(field: PairwiseField, part: Part, labels: Tensor) -> None:
    """Refuse labels with a forbidden state or pair, in all processes."""
    node, edge = field.expanded()
    source, target = field.edge_index
    replica = torch.arange(len(labels), device=labels.device)[:, None]
    pair = edge[replica, torch.arange(field.num_edges, device=labels.device), labels[:, source], labels[:, target]]
    own = node.gather(-1, labels[..., None])[:, : part.num_own]
    barred = int((own == -torch.inf).sum() + (pair == -torch.inf).sum())
    if int(total(torch.tensor(barred), part.halo.group)):
        raise InfeasibleError(
            "accord.distributed: the labels that were found hold forbidden states or pairs. Repairing them needs the "
            "whole graph in one process. Use NodeClassifier.predict on a larger machine, or relax the constraints.",
            proved=False,
        )
