"""Messages on a tree of cliques: inwards to the roots, and outwards to beliefs or labels.

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
    """The result of the inward pass.

    The table of a clique is the sum of its own potentials and its children's messages; `outgoing` is the table with the
    eliminated node summed (or maximised) out. So `table - outgoing` is the conditional of that node given its
    separator.
    """

    tables: list[Tensor]  # per layer [R, cliques, states ** size]
    outgoing: list[Tensor]  # per layer [R, cliques, states ** (size - 1)]
    constants: Tensor  # [R, nodes]: their sum over the nodes of a graph is log Z (or the best score)
    num_states: int


def collect(junction: Junction, node: Tensor, edge: Tensor, reduce: Reduction) -> Collected:
    """Pass messages from the leaves to the roots; clique (v, S) sends its parent a message about its separator S.

    m(x_S) = reduce over x_v of [ theta_v(x_v) + sum_u theta_vu(x_v, x_u) + messages of the children ]

    Args:
        junction: the tree of cliques.
        node: [R, nodes, states].
        edge: [R, edges, states, states].
        reduce: how states are summed out, in logs: sum or max.
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
        # Only differences matter to the parent; sums that grow along a chain would lose precision.
        peak = sent.detach().amax(-1, keepdim=True).clamp_min(torch.finfo(sent.dtype).min)
        constants.append(peak[..., 0])
        messages = sent - peak
        for link in layer.links:
            incoming = messages.new_zeros(messages.shape[0], len(link.parent), messages.shape[2])
            incoming = incoming.index_add(1, link.which, messages[:, link.child])
            size = junction.layers[link.layer].size
            tables[link.layer].index_add_(1, link.parent, _spread(incoming, link.axes, size, num_states))
    return Collected(tables, outgoing[::-1], _join(constants[::-1], node[..., 0], junction.node_place), num_states)


def distribute(junction: Junction, collected: Collected, reduce: Reduction) -> tuple[Tensor, Tensor]:
    """Pass beliefs from the roots to the leaves: [R, nodes, states] and [R, edges, states, states].

    b(x_v, x_S) = [ table(x_v, x_S) - outgoing(x_S) ] + parent's b(x_S)

    The message to the parent is divided out again (Lauritzen and Spiegelhalter 1988). This is safe with -inf: where
    `outgoing` is -inf, so is every entry of the table that it came from, and subtracting 0 instead changes nothing.
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
        choose: from log-potentials [..., states] to a state [...]. Choosing the best state from max tables gives an
            exact optimum, ties included, since later nodes are chosen given earlier ones; drawing from sum tables gives
            a sample.
        num_samples: how many labellings to make.
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
    """Each clique's own potentials: those of its first node and of that node's edges into the clique."""
    num_states = node.shape[-1]
    table = _spread(node[:, layer.clique[:, 0]], (0,), layer.size, num_states)
    for slot in layer.slots:
        own = _spread(edge[:, slot.edge].flatten(2), (0, slot.axis), layer.size, num_states)
        table.index_add_(1, slot.row, own)
    return table


def _spread(values: Tensor, axes: tuple[int, ...], size: int, num_states: int) -> Tensor:
    """Expand tables over some axes of a clique to all its axes: [R, rows, states ** size]."""
    shape = [num_states if axis in axes else 1 for axis in range(size)]
    spread: Tensor = values.unflatten(2, shape).expand(-1, -1, *[num_states] * size)
    return spread.flatten(2)


def _marginal(table: Tensor, axes: tuple[int, ...], size: int, num_states: int, reduce: Reduction) -> Tensor:
    """Reduce tables of cliques of one size to some of their axes: [R, rows, states ** len(axes)]."""
    others = tuple(2 + axis for axis in range(size) if axis not in axes)
    return reduce(table.unflatten(2, [num_states] * size), others).flatten(2) if others else table


def _join(pieces: Sequence[Tensor], empty: Tensor, place: Tensor) -> Tensor:
    """Concatenate pieces along the second axis, and pick the entries `place` from it."""
    return torch.cat([empty[:, :0], *pieces], dim=1)[:, place]
