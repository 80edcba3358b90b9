"""What every message passing kernel is given and gives back."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from accord.graphs import Arcs


@dataclass(frozen=True, eq=False)
class Problem:
    """A field with its replica axes in one, and how to run on it."""

    arcs: Arcs
    node: Tensor  # [R, nodes, states]
    edge: Tensor  # [R, edges, states, states]
    appearance: Tensor  # [R or 1, edges]: 1 is plain propagation
    arc_graph: Tensor  # [arcs]: which graph an arc belongs to
    num_graphs: int
    semiring: str
    damping: float
    max_sweeps: int
    tolerance: float
    start: Tensor | None  # [R, arcs, states]: messages to go on from


@dataclass(frozen=True, eq=False)
class Solution:
    """Messages, and for each replica and graph how they were reached."""

    messages: Tensor  # [R, arcs, states]: normalised logs
    residual: Tensor  # [R, graphs]: largest change of a log-message in the last sweep
    sweeps: Tensor  # [R, graphs]: sweeps until it was frozen, or all of them


Kernel = Callable[[Problem], Solution]
