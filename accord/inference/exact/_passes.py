"""Messages on a tree of cliques: inwards to the roots, outwards again, and labels read off on the way out.

Tables of a layer are [R, cliques, states ** size] with the clique's nodes in order; all values are logs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.inference._semiring import Reduction
from accord.inference.exact._junction import Junction, Layer, Link


@dataclass(frozen=True, eq=False)
class Collected:
    """What has come in at each clique.

    A table is the clique's own potentials and its children's messages; `outgoing` is the table with the
    eliminated node summed (or maximised) out. So `table - outgoing` is that node given its separator.
    """

    tables: list[Tensor]  # per layer [R, cliques, states ** size]
    outgoing: list[Tensor]  # per layer [R, cliques, states ** (size - 1)]
    constants: Tensor  # [R, nodes]: over the nodes of a graph they sum to log Z (or to the best score)
    num_states: int


def collect(junction: Junction, node: Tensor, edge: Tensor, reduce: Reduction) -> Collected:
    """Pass messages from the leaves to the roots, each clique (v, S) telling its parent about its separator S.

    m(x_S) = reduce over x_v of [ theta_v(x_v) + sum_u theta_vu(x_v, x_u) + what the children say ]

    Args:
        junction: the tree of cliques.
        node: [R, nodes, states].
        edge: [R, edges, states, states].
        reduce: how logs are summed out: sum or max.
    """
    num_states = node.shape[-1]
    edge = torch.where(junction.flipped[:, None, None], edge.mT, edge)
    tables = [_potentials(layer, node, edge) for layer in junction.layers]
    outgoing: list[Tensor] = []
    constants: list[Tensor] = []
    for layer, table in zip(reversed(junction.layers), reversed(tables), strict=True):
        sent = reduce(table.unflatten(2, (num_states, -1)), (2,))
        outgoing.append(sent)
        if not layer.links:
            constants.append(sent[..., 0])
            continue
        # Only differences matter to the parent; sums that grow along a chain would eat up the precision.
        peak = sent.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(sent.dtype).min)
        constants.append(peak[..., 0])
        messages = sent - peak
        for link in layer.links:
            heard = messages.new_zeros(messages.shape[0], len(link.parent), messages.shape[2])
            heard = heard.index_add(1, link.which, messages[:, link.child])
            size = junction.layers[link.layer].size
            tables[link.layer].index_add_(1, link.parent, _spread(heard, link.axes, size, num_states))
    return Collected(tables, outgoing[::-1], _join(constants[::-1], node[..., 0], junction.node_place), num_states)


def distribute(junction: Junction, collected: Collected, reduce: Reduction) -> tuple[Tensor, Tensor]:
    """Pass beliefs from the roots to the leaves: [R, nodes, states] and [R, edges, states, states].

    b(x_v, x_S) = [ table(x_v, x_S) - outgoing(x_S) ] + parent's b(x_S)

    A message is divided out again (Lauritzen and Spiegelhalter 1988), which is safe with -inf: where `outgoing`
    is -inf so is every entry of the table that it came from, and anything finite can stand in for it.
    """
    states = collected.num_states
    beliefs: list[Tensor] = []

    def marginal(table: Tensor, axes: tuple[int, ...], size: int) -> Tensor:
        return _marginal(table, axes, size, states, reduce)

    def separator(link: Link) -> Tensor:
        parents = beliefs[link.layer][:, link.parent]
        return marginal(parents, link.axes, junction.layers[link.layer].size)[:, link.which]

    nodes: list[Tensor] = []
    edges: list[Tensor] = []
    for layer, table, outgoing in zip(junction.layers, collected.tables, collected.outgoing, strict=True):
        divisor = outgoing.masked_fill(outgoing == -torch.inf, 0.0)
        belief = table.unflatten(2, (states, -1)) - divisor[:, :, None]
        if layer.links:
            arrived = torch.cat([separator(link) for link in layer.links], dim=1)
            belief = belief + arrived[:, layer.arrival][:, :, None]
        beliefs.append(belief.flatten(2))
        nodes.append(marginal(beliefs[-1], (0,), layer.size))
        edges += [marginal(beliefs[-1][:, slot.row], (0, slot.axis), layer.size) for slot in layer.slots]
    empty = collected.constants[:, :0, None]
    node = _join(nodes, empty.expand(-1, -1, states), junction.node_place)
    edge = _join(edges, empty.expand(-1, -1, states**2), junction.edge_place).unflatten(2, (states, states))
    return node, torch.where(junction.flipped[:, None, None], edge.mT, edge)


def backtrack(
    junction: Junction, collected: Collected, choose: Callable[[Tensor], Tensor], num_samples: int = 1
) -> Tensor:
    """Label the nodes from the roots outwards, each given its separator: [num_samples, R, nodes].

    Args:
        junction: the tree of cliques.
        collected: what `collect` returned.
        choose: from log-potentials [..., states] to a state [...]. The best one makes an exact optimum of max
            tables, ties or not, since later nodes see what was chosen; a draw makes a sample of sum tables.
        num_samples: how many labellings are made at once.
    """
    states = collected.num_states
    replicas, num_nodes = collected.constants.shape
    labels = collected.constants.new_zeros((replicas, num_nodes, num_samples), dtype=torch.long)
    for layer, table in zip(junction.layers, collected.tables, strict=True):
        column = labels.new_zeros(replicas, len(layer.clique), num_samples)
        for other in layer.clique[:, 1:].unbind(1):
            column = column * states + labels[:, other]
        given = table.unflatten(2, (states, -1)).gather(3, column[:, :, None].expand(-1, -1, states, -1))
        labels[:, layer.clique[:, 0]] = choose(given.transpose(2, 3))
    return labels.permute(2, 0, 1)


def _potentials(layer: Layer, node: Tensor, edge: Tensor) -> Tensor:
    """Each clique's own part of the field: its first node and that node's edges into the clique."""
    num_states = node.shape[-1]
    table = _spread(node[:, layer.clique[:, 0]], (0,), layer.size, num_states)
    for slot in layer.slots:
        own = _spread(edge[:, slot.edge].flatten(2), (0, slot.axis), layer.size, num_states)
        table.index_add_(1, slot.row, own)
    return table


def _spread(values: Tensor, axes: tuple[int, ...], size: int, num_states: int) -> Tensor:
    """Repeat a table over some axes of a clique along all the others: [R, rows, states ** size]."""
    shape = [num_states if axis in axes else 1 for axis in range(size)]
    spread: Tensor = values.unflatten(2, shape).expand(-1, -1, *[num_states] * size)
    return spread.flatten(2)


def _marginal(table: Tensor, axes: tuple[int, ...], size: int, num_states: int, reduce: Reduction) -> Tensor:
    """Reduce tables of cliques of one size to some of their axes: [R, rows, states ** len(axes)]."""
    others = tuple(2 + axis for axis in range(size) if axis not in axes)
    return reduce(table.unflatten(2, [num_states] * size), others).flatten(2) if others else table


def _join(pieces: Sequence[Tensor], empty: Tensor, place: Tensor) -> Tensor:
    """Pieces one after another along the second axis, then in the order that `place` says."""
    return torch.cat([empty[:, :0], *pieces], dim=1)[:, place]
