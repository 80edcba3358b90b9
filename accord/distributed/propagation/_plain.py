"""The sweeps of one part in plain torch: on any device, and what the compiled version is checked against.

Totals travel between processes as [states] logs, up to a constant for each node; or, if anything is forbidden anywhere,
as [2 states] finite parts and numbers of infinities.
"""

from typing import Protocol

import torch
from torch import Tensor

from accord.distributed._part import Part
from accord.inference._extended import Extended
from accord.inference.kernels import Problem
from accord.inference.kernels.reference import arc_potentials, change, collect, damp, first_messages
from accord.inference.kernels.reference._synchronous import new_messages


class Sweeps(Protocol):
    """The messages of one part, between two exchanges."""

    def border(self, rows: Tensor) -> Tensor:
        """Totals of own nodes, to be sent [rows, states or 2 states]."""

    def inner(self, exact: bool) -> None:
        """The first half of a sweep: edges between own nodes. Needs no totals of ghosts."""

    def outer(self, ghosts: Tensor, exact: bool) -> float:
        """The second half: edges to ghosts, given their totals. Returns the largest change of a log-message.

        The change is exact if `exact`; otherwise it is only right about whether it exceeds the tolerance.
        """

    def messages(self) -> Tensor:
        """Normalised log-messages [arcs, states] in the order of the part's edges."""

    def totals(self) -> Tensor:
        """Beliefs up to a constant for each node [own + ghosts, states]; rows of ghosts hold anything."""

    def end(self) -> None:
        """Free what only sweeps and totals need; afterwards only `messages` may be called."""


class PlainSweeps:
    """Sweeps in plain torch.

    Args:
        part: what this process holds.
        problem: the field of the part; what it says of ghosts is not used.
        counted: whether infinities are counted.
    """

    def __init__(self, part: Part, problem: Problem, counted: bool) -> None:
        self.part, self.problem, self.counted = part, problem, counted
        own = (part.edge_index < part.num_own).all(0)
        device = problem.node.device
        numbers = torch.arange(problem.arcs.num_edges, device=device)
        self.halves = [torch.cat([half, len(own) + half]) for half in (numbers[own], numbers[~own])]
        self.potentials = arc_potentials(problem)
        self.now = first_messages(problem)
        self.next = self.now.clone()
        self.sums = collect(problem, self.now)

    def border(self, rows: Tensor) -> Tensor:
        """Totals of own nodes, to be sent."""
        sums = self.sums.rows(rows.to(self.now.device))
        return torch.cat([sums.finite, sums.infinities], -1)[0, :, : self._width].to(self.now.dtype)

    def inner(self, exact: bool) -> None:
        """Edges between own nodes."""
        self._send(self.halves[0])

    def outer(self, ghosts: Tensor, exact: bool) -> float:
        """Edges to ghosts; ends the sweep."""
        if len(ghosts):
            finite, *counts = ghosts.to(self.sums.finite).chunk(2 if self.counted else 1, -1)
            self.sums.finite[0, self.part.num_own :] = finite
            self.sums.infinities[0, self.part.num_own :] = counts[0] if counts else 0.0
        self._send(self.halves[1])
        moved = change(self.problem, self.now, self.next, relative=True)
        self.now, self.next = self.next, self.now
        self.sums = collect(self.problem, self.now)
        return float(moved)

    def messages(self) -> Tensor:
        """Normalised log-messages in the order of the part's edges."""
        return self.now[0].clone()

    def totals(self) -> Tensor:
        """Beliefs up to a constant for each node."""
        return self.sums.join()[0].to(self.now.dtype)

    def end(self) -> None:
        """Free everything but messages."""
        del self.potentials, self.next, self.sums

    @property
    def _width(self) -> int:
        return self.now.shape[-1] * (2 if self.counted else 1)

    def _send(self, arcs: Tensor) -> None:
        if not len(arcs):
            return
        problem = self.problem
        source, heard = problem.arcs.source[arcs], Extended.split(self.now[:, problem.arcs.reverse[arcs]])
        cavity = (self.sums.rows(source) - heard).join().to(self.now.dtype)
        new = new_messages(problem, self.potentials[:, arcs], cavity, arcs)
        self.next[:, arcs] = damp(problem, self.now[:, arcs], new)
