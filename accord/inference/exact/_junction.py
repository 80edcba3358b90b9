"""The tree of cliques that exact inference passes messages on, laid out so that many cliques are processed at once.

Every node has one clique: itself and the neighbours that remained when it was eliminated (a bucket, Dechter 1999). The
members other than the node form the separator. The parent of a clique belongs to the member of the separator that is
eliminated first, and contains the whole separator. Cliques of the same size and distance from their root form a layer,
whose tables are one tensor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

LayerKey = tuple[int, int]  # distance from the root, clique size


@dataclass(frozen=True, eq=False)
class EdgeSlot:
    """Edges between the first node of a clique and the one on axis `axis`, in cliques `row` of a layer."""

    axis: int
    edge: Tensor  # [edges]
    row: Tensor  # [edges]


@dataclass(frozen=True, eq=False)
class Link:
    """Cliques of a layer whose separators take the same `axes` of their parents, all in one layer."""

    layer: int  # of the parents
    axes: tuple[int, ...]
    child: Tensor  # [children]: rows of the layer
    parent: Tensor  # [parents]: rows of the parents' layer, each once
    which: Tensor  # [children]: entry of `parent`


@dataclass(frozen=True, eq=False)
class Layer:
    """Cliques of one size and one distance from the root."""

    clique: Tensor  # [cliques, size]: nodes in order of elimination; the clique belongs to the first
    slots: tuple[EdgeSlot, ...]
    links: tuple[Link, ...]  # none in layers of roots
    arrival: Tensor  # [cliques]: position of a row's message when those of all links are concatenated

    @property
    def size(self) -> int:
        """How many nodes each clique has."""
        return int(self.clique.shape[1])


@dataclass(frozen=True, eq=False)
class Junction:
    """Layers from the roots outwards, and how results return to the order of nodes and edges."""

    layers: tuple[Layer, ...]
    node_place: Tensor  # [nodes]: position among the concatenated nodes of all layers
    edge_place: Tensor  # [edges]: position among the concatenated edges of all slots
    flipped: Tensor  # [edges]: True where the target is eliminated before the source


def build_junction(edge_index: Tensor, cliques: Sequence[Sequence[int]]) -> Junction:
    """Lay out the cliques of an elimination, given in order of elimination with the eliminated node first."""
    device = edge_index.device
    rank = {clique[0]: position for position, clique in enumerate(cliques)}
    ordered = {clique[0]: sorted(clique, key=rank.__getitem__) for clique in cliques}
    members = _layer_members(cliques, ordered)
    number = {key: index for index, key in enumerate(members)}
    place = {node: (number[key], row) for key, nodes in members.items() for row, node in enumerate(nodes)}
    slots, flipped = _edge_slots(edge_index, rank, ordered, place, len(members))
    layers = []
    for index, nodes in enumerate(members.values()):
        links = _links(nodes, ordered, place, device)
        clique = torch.tensor([ordered[node] for node in nodes], device=device)
        arrival = _inverse([link.child for link in links], device)
        layers.append(Layer(clique, slots[index], links, arrival))
    return Junction(
        layers=tuple(layers),
        node_place=_inverse([layer.clique[:, 0] for layer in layers], device),
        edge_place=_inverse([slot.edge for layer in layers for slot in layer.slots], device),
        flipped=torch.tensor(flipped, dtype=torch.bool, device=device),
    )


def _layer_members(cliques: Sequence[Sequence[int]], ordered: dict[int, list[int]]) -> dict[LayerKey, list[int]]:
    """Nodes of each layer, roots first: a parent's layer always comes before its children's."""
    depth: dict[int, int] = {}
    members: dict[LayerKey, list[int]] = {}
    for clique in reversed(cliques):
        node, *separator = ordered[clique[0]]
        depth[node] = depth[separator[0]] + 1 if separator else 0
        members.setdefault((depth[node], len(clique)), []).append(node)
    return dict(sorted(members.items()))


def _edge_slots(
    edge_index: Tensor,
    rank: dict[int, int],
    ordered: dict[int, list[int]],
    place: dict[int, tuple[int, int]],
    num_layers: int,
) -> tuple[list[tuple[EdgeSlot, ...]], list[bool]]:
    """Assign every edge to the clique of its end that is eliminated first; also, which edges this reverses."""
    found: list[dict[int, list[tuple[int, int]]]] = [{} for _ in range(num_layers)]
    flipped = []
    for edge, (source, target) in enumerate(edge_index.t().tolist()):
        flip = rank[target] < rank[source]
        first, second = (target, source) if flip else (source, target)
        layer, row = place[first]
        found[layer].setdefault(ordered[first].index(second), []).append((edge, row))
        flipped.append(flip)
    device = edge_index.device
    slots = [
        tuple(EdgeSlot(axis, *torch.tensor(pairs, device=device).unbind(1)) for axis, pairs in by_axis.items())
        for by_axis in found
    ]
    return slots, flipped


def _links(
    nodes: list[int], ordered: dict[int, list[int]], place: dict[int, tuple[int, int]], device: torch.device
) -> tuple[Link, ...]:
    """Group the cliques of one layer by the layer and axes of their separators in the parents."""
    found: dict[tuple[int, tuple[int, ...]], list[tuple[int, int]]] = {}
    for row, node in enumerate(nodes):
        separator = ordered[node][1:]
        if separator:
            layer, parent_row = place[separator[0]]
            axis = {member: position for position, member in enumerate(ordered[separator[0]])}
            axes = tuple(axis[member] for member in separator)
            found.setdefault((layer, axes), []).append((row, parent_row))
    links = []
    for (layer, axes), pairs in found.items():
        child, parent_row_ = torch.tensor(pairs, device=device).unbind(1)
        parent, which = parent_row_.unique(return_inverse=True)
        links.append(Link(layer, axes, child, parent, which))
    return tuple(links)


def _inverse(pieces: Sequence[Tensor], device: torch.device) -> Tensor:
    """Position of each of the numbers 0, 1, ... in the concatenated pieces, which hold each once."""
    if not pieces:
        return torch.empty(0, dtype=torch.long, device=device)
    return torch.cat(list(pieces)).argsort()
