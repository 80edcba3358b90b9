"""Nodes, edges and triangles as regions: their beliefs, and the messages that make the beliefs agree.

Outer regions are the triangles, and the edges that belong to none. Inner regions are their sides and nodes. Region r
has the counting number c_r (`Regions`), and starts from the sum theta_r of all potentials inside it:

    outer:  b_a = theta_a + sum over inner b of m_ba
    inner:  b_b = (c_b theta_b + sum over outer a of (marginal of b_a - m_ba)) / (n_b + c_b),  n_b outer regions hold b
            m_ba <- b_b - (marginal of b_a - m_ba)

The fixed points are the stationary points of the Kikuchi free energy. This is the message passing of Heskes, Albers and
Kappen (2003). Messages from parents to children (Yedidia, Freeman and Weiss 2005) have the same fixed points, but often
do not converge, not even on junction trees. Without triangles this is belief propagation.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field.triangles import TriangleField
from accord.graphs import SIDES
from accord.inference._semiring import Reduction

BARRIER = 1e5  # nats; stands for -inf, so that messages can be taken out of sums again
IMPOSSIBLE = -BARRIER / 2  # beliefs below it are -inf
SHOWN = -1e3  # messages below it are equal: the height of a barrier does not matter
OTHERS = ((-1, -2), (-1, -3), (-2, -3))  # axes of the other corners of a triangle


@dataclass(frozen=True, eq=False)
class Messages:
    """Normalised log-messages of all replicas."""

    side: Tensor  # [R, triangles, 3, states, states]: from sides to triangles; axes in the order of the corners
    corner: Tensor  # [R, triangles, 3, states]: from nodes to triangles
    end: Tensor  # [R, edges, 2, states]: from nodes to edges without a triangle, at their source and at their target

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """All messages, [R, outer regions, ...] each."""
        return self.side, self.corner, self.end

    def damped(self, side: Tensor | None, corner: Tensor | None, end: Tensor | None, damping: float) -> "Messages":
        """The messages with others in their place, as far as damping lets them; None leaves them."""
        pairs = zip((side, corner, end), self.parts, strict=True)
        return Messages(*(old if new is None else torch.lerp(new, old, damping) for new, old in pairs))


class Regions:
    """The regions of a field, in float64, all replicas side by side."""

    def __init__(self, field: TriangleField) -> None:
        triangles, edge_index = field.triangles, field.edge_index
        self.corner, self.place, self.turned = triangles.corner, triangles.side, triangles.turned
        per_edge = torch.bincount(self.place.flatten(), minlength=field.num_edges)
        self.edge_index, self.alone = edge_index, (per_edge == 0).nonzero().flatten()
        self.ends = edge_index[:, self.alone].t()  # [edges, 2]
        triangles_at = torch.bincount(self.corner.flatten(), minlength=field.num_nodes)
        outer = triangles_at + torch.bincount(self.ends.flatten(), minlength=field.num_nodes)
        # An edge in n triangles counts 1 - n times, a node 1 - edges + triangles times.
        self.edge_counting = 1 - per_edge
        self.node_counting = 1 - torch.bincount(edge_index.flatten(), minlength=field.num_nodes) + triangles_at
        self.shares = outer + self.node_counting  # at least 1; the same sum is 1 for every edge of a triangle
        self.node, edge, triangle = (part.detach().double().clamp(min=-BARRIER) for part in field.expanded())
        source, target = (self.node[:, end] for end in edge_index)
        self.edge = edge + source[..., :, None] + target[..., None, :]
        sides = self._turn(edge[:, self.place])
        self.triangle = _spread(triangle, sides, self.node[:, self.corner])

    def silence(self) -> Messages:
        """Messages that say nothing."""
        replicas, triangles, states = self.triangle.shape[:3]
        shapes = (triangles, 3, states, states), (triangles, 3, states), (len(self.alone), 2, states)
        logs = 2 * math.log(states), math.log(states), math.log(states)
        pairs = zip(shapes, logs, strict=True)
        return Messages(*(self.node.new_full((replicas, *shape), -log) for shape, log in pairs))

    def send_sides(self, messages: Messages, reduce: Reduction) -> Tensor:
        """New messages from sides, given all others."""
        heard = self._heard_by_sides(messages, reduce)
        return _normalised(self._turn(self._sides(heard)[:, self.place]) - heard, 2)

    def send_nodes(self, messages: Messages, reduce: Reduction) -> tuple[Tensor, Tensor]:
        """New messages from nodes to triangles and to edges, given all others."""
        corner, end = self._heard_by_nodes(messages, reduce)
        node = self._nodes(corner, end)
        return _normalised(node[:, self.corner] - corner, 1), _normalised(node[:, self.ends] - end, 1)

    def beliefs(self, messages: Messages, reduce: Reduction) -> tuple[Tensor, Tensor, Tensor]:
        """Unnormalised log-beliefs of nodes, edges and triangles."""
        triangle, edge = self._outer(messages)
        inner = self._sides(self._heard_by_sides(messages, reduce))
        inner[:, self.alone] = edge
        return self._nodes(*self._heard_by_nodes(messages, reduce)), inner, triangle

    def _outer(self, messages: Messages) -> tuple[Tensor, Tensor]:
        """Beliefs of triangles, and of edges without one."""
        source, target = messages.end.unbind(2)
        edge = self.edge[:, self.alone] + source[..., :, None] + target[..., None, :]
        return _spread(self.triangle, messages.side, messages.corner), edge

    def _heard_by_sides(self, messages: Messages, reduce: Reduction) -> Tensor:
        triangle, _ = self._outer(messages)
        marginals = [reduce(triangle, dim=-1 - side) for side in range(len(SIDES))]  # the corner opposite to the side
        return torch.stack(marginals, 2) - messages.side

    def _heard_by_nodes(self, messages: Messages, reduce: Reduction) -> tuple[Tensor, Tensor]:
        triangle, edge = self._outer(messages)
        corner = torch.stack([reduce(triangle, dim=others) for others in OTHERS], 2)
        end = torch.stack([reduce(edge, dim=-1), reduce(edge, dim=-2)], 2)
        return corner - messages.corner, end - messages.end

    def _sides(self, heard: Tensor) -> Tensor:
        """Beliefs of edges [R, edges, states, states], in their own directions; those without a triangle are left."""
        own = self.edge_counting[:, None, None] * self.edge
        return own.index_add(1, self.place.flatten(), self._turn(heard).flatten(1, 2))

    def _nodes(self, corner: Tensor, end: Tensor) -> Tensor:
        total = self.node_counting[:, None] * self.node
        total = total.index_add(1, self.corner.flatten(), corner.flatten(1, 2))
        return total.index_add(1, self.ends.flatten(), end.flatten(1, 2)) / self.shares[:, None]

    def _turn(self, tables: Tensor) -> Tensor:
        """Tables [R, triangles, 3, states, states] between the directions of edges and of sides."""
        return torch.where(self.turned[..., None, None], tables.mT, tables)


def _spread(triangle: Tensor, sides: Tensor, corners: Tensor) -> Tensor:
    """Tables of triangles, plus those of their sides and corners."""
    total = triangle
    for side in range(len(SIDES)):
        total = total + sides[:, :, side].unsqueeze(-1 - side)
    first, second, third = corners.unbind(2)
    return total + first[..., :, None, None] + second[..., None, :, None] + third[..., None, None, :]


def _normalised(messages: Tensor, inner: int) -> Tensor:
    return messages - messages.logsumexp(tuple(range(-inner, 0)), keepdim=True)
