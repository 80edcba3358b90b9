"""A share of a batch: the graphs that one process holds, and the numbers of their rows in the whole batch."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from accord.graphs._derived import Derived

Rows = Literal["node", "edge", "arc", "triangle"]


@dataclass(frozen=True, eq=False)
class Share:
    """Some graphs of a batch, in the order that they have there.

    Rows of nodes, edges, arcs and triangles are listed graph by graph, in a batch as in a share of it. So the numbers
    of the rows follow from how many rows each graph has.

    Args:
        counts: [graphs of the whole batch, 3], nodes, edges and triangles of each.
        mine: [graphs of the share], their places in the whole batch, ascending.
        idle: whether the graphs belong to another share too, and count there alone.
    """

    counts: Tensor
    mine: Tensor
    idle: bool = False
    _derived: Derived = field(default_factory=Derived, init=False, repr=False)

    def to(self, device: torch.device | str) -> "Share":
        """The same share on another device."""
        return Share(self.counts.to(device), self.mine.to(device), self.idle)

    def rows(self, kind: Rows) -> Tensor:
        """The numbers of the share's rows in the whole batch; arcs include a self-loop at every node."""
        return self._derived.get(kind, lambda: self._rows(kind))

    def _rows(self, kind: Rows) -> Tensor:
        nodes, edges, triangles = self.counts.unbind(1)
        sizes = {"node": nodes, "edge": edges, "arc": 2 * edges + nodes, "triangle": triangles}[kind]
        first = (sizes.cumsum(0) - sizes)[self.mine]
        own = sizes[self.mine]
        here = own.cumsum(0) - own
        total = int(own.sum())
        shift = torch.repeat_interleave(first - here, own, output_size=total)
        return torch.arange(total, device=shift.device) + shift
