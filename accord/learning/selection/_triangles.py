"""How much the triangle network counts: chosen on validation data, beside what was chosen for nodes and edges.

The search is that of `choose_carefully`, and starts from the pairwise field: order 2 is kept unless triangles gain more
than noise explains. Among candidates that noise cannot tell from the best, the likelihood of the labels decides.
"""

from dataclasses import dataclass, replace
from itertools import product

import torch
from torch import Tensor

from accord.errors import OptionError
from accord.evaluation import level_score, needs_probabilities
from accord.graphs import Topology
from accord.learning.objectives import rank
from accord.learning.selection._careful import TIED, Point, _Search, _Solved
from accord.learning.selection._combination import FieldChoice
from accord.learning.selection._grid import chunk_bytes
from accord.learning.selection._triangle_choice import TriangleChoice

CHOSEN = ("triangle_sharpness", "triangle_weight", "triangle_share", "triangle_node_weight", "triangle_edge_weight")


@dataclass(frozen=True, kw_only=True)
class TriangleGrid:
    """Candidates beside a weight of 0, which is the pairwise field: every combination of these values, in rising order.

    Node and edge weights multiply what was chosen for the pairwise field.
    """

    sharpness: tuple[float, ...] = (0.5, 1.0, 2.0)
    weight: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5)
    share: tuple[float, ...] = (0.0, 1.0)  # 0: divided by a table's own sums, 1: by the pairwise field
    node_weight: tuple[float, ...] = (0.5, 1.0, 2.0)
    edge_weight: tuple[float, ...] = (0.0, 0.5, 1.0)

    def __post_init__(self) -> None:
        for name, values in vars(self).items():
            listed = values if isinstance(values, (tuple, list)) else ()
            numbers = [v for v in listed if isinstance(v, (int, float)) and not isinstance(v, bool) and 0 <= v < 1e9]
            if not numbers or len(numbers) != len(listed):
                raise OptionError(f"TriangleGrid: {name} is {values!r}; a list of numbers from 0 up is needed.")

    @property
    def axes(self) -> list[tuple[float, ...]]:
        """The values of each number, in the order of `CHOSEN`."""
        values = (self.sharpness, self.weight, self.share, self.node_weight, self.edge_weight)
        return [tuple(sorted(axis)) for axis in values]


def choose_triangles(
    node: Tensor,
    edge: Tensor,
    triangle: Tensor,
    targets: Tensor,
    topology: Topology,
    level: str,
    grid: TriangleGrid,
    damping: float,
    pairs: FieldChoice,
    shrinkage: Tensor | None = None,
) -> TriangleChoice:
    """Sharpness and weights of the triangle network, or order 2, for each replica.

    Args:
        node: [R, nodes, states], logits on validation graphs.
        edge: [R, edges, states, states], logits.
        triangle: [R, triangles, states, states, states], logits.
        targets: [R, nodes], their labels.
        topology: the validation graphs.
        level: one of `accord.evaluation.LEVELS`.
        grid: the candidates.
        damping: of propagation.
        pairs: what was chosen for the pairwise field.
        shrinkage: of the pseudomarginals of triangles [R]; None for none.
    """
    order_2 = TriangleChoice.default(pairs, shrinkage)
    if not triangle.shape[1]:
        return order_2
    search = _TriangleSearch(node, edge, triangle, targets, topology, level, damping, order_2)
    axes, replicas = grid.axes, node.shape[0]
    middle = tuple(_nearest(axis, 1.0) for axis in axes)
    tried: list[list[Point]] = [[(), *_coarse(axes, middle)] for _ in range(replicas)]
    solved = search.explore(tried, lambda point: _neighbours(axes, point), lambda points: _rows(axes, points, node))
    winner = torch.tensor([search.pick(solved, replica) for replica in range(replicas)], device=node.device)
    chosen = search.choice(solved.rows[winner, torch.arange(replicas)])
    score = solved.score.gather(0, winner[None])[0].to(node.dtype)
    return replace(chosen, pairs=replace(pairs, score=score))


class _TriangleSearch(_Search):
    """Validation data, and what candidates make of them; the first candidate is order 2."""

    def __init__(
        self,
        node: Tensor,
        edge: Tensor,
        triangle: Tensor,
        targets: Tensor,
        topology: Topology,
        level: str,
        damping: float,
        order_2: TriangleChoice,
    ) -> None:
        super().__init__(node, edge, targets, topology, level, damping, None)
        self.triangle, self.order_2 = triangle, order_2
        self.alone = order_2.pairs.labels(order_2.pairs.field(node, edge, topology), damping)

    def choice(self, rows: Tensor) -> TriangleChoice:
        """Candidates [..., R, numbers]."""
        own = self.order_2.own() | dict(zip(CHOSEN, rows.unbind(-1), strict=True))
        return TriangleChoice(self.order_2.pairs, **own)

    def solve(self, rows: Tensor) -> _Solved:
        """Solve candidates [candidates, R, numbers], as many at once as fit into memory."""
        size = max(1, chunk_bytes(self.edge.device) // max(1, 8 * self.triangle.numel() * self.triangle.element_size()))
        solved: _Solved | None = None
        # Order 2 is solved by pairs, alone.
        for chunk in (rows[:1], *rows[1:].split(size)) if not bool(rows[0, :, 1].any()) else rows.split(size):
            part = self._solve(chunk)
            solved = part if solved is None else solved.and_more(part)
        assert solved is not None
        return solved

    def _solve(self, rows: Tensor) -> _Solved:
        choice = self.choice(rows)
        field = choice.field(self.node, self.edge, self.triangle, self.topology)
        labels, logs = choice.labels(field, self.damping), None
        if needs_probabilities(self.level):
            logs = choice.beliefs(field, "sum", self.damping).node
        return _Solved(
            rows,
            rank(labels, self.targets, self.topology, self.level, logs).nan_to_num(-torch.inf),
            level_score(self.level, labels, self.targets, self.topology, logs),
            (labels != self.alone).sum(-1),
            self._units(labels, logs),
        )

    def pick(self, solved: _Solved, replica: int) -> int:
        """The candidate that one replica takes: the likeliest of those whose score noise cannot tell from the best."""
        ranks = solved.rank[:, replica]
        best = int(ranks.argmax())
        if bool(ranks[0] >= ranks[best]):
            return 0
        if self._within_noise(solved, best, replica) and not self._is_likelier(solved, best, replica):
            return 0
        near = (ranks >= ranks[best]).nonzero().flatten()
        if self.level not in ("f1", "auc"):  # those are not sums over graphs or nodes
            loss = solved.units[0, best, replica] - solved.units[0, :, replica]
            weight = self.weight[0, replica]
            mean = loss.sum(-1) / weight.sum()
            error = (loss - mean[:, None] * weight).square().sum(-1).sqrt() / weight.sum()
            near = (mean <= error).nonzero().flatten()
        near = near[near > 0]
        near = near[ranks[near].argsort(descending=True, stable=True)][:TIED]
        return int(near[self._likelihood(solved.rows[near, replica], replica).argmax()])

    def _marginals(self, row: Tensor, replica: int) -> Tensor:
        """Log-marginals [1, nodes, states] of one replica by a candidate [numbers]."""
        own = slice(replica, replica + 1)
        pairs = FieldChoice(**{name: value[own] for name, value in self.order_2.pairs.tensors().items()})
        mine = {name: value[own] for name, value in self.order_2.own().items()}
        mine |= dict(zip(CHOSEN, row[None].unbind(-1), strict=True))
        choice = TriangleChoice(pairs, **mine)
        field = choice.field(self.node[own], self.edge[own], self.triangle[own], self.topology)
        return choice.beliefs(field, "sum", self.damping).node


def _nearest(axis: tuple[float, ...], value: float) -> int:
    return min(range(len(axis)), key=lambda place: abs(axis[place] - value))


def _coarse(axes: list[tuple[float, ...]], middle: Point) -> list[Point]:
    """Every weight and share, with the middle of the other axes."""
    return [(middle[0], *places, *middle[3:]) for places in product(range(len(axes[1])), range(len(axes[2])))]


def _neighbours(axes: list[tuple[float, ...]], point: Point) -> list[Point]:
    """Points one step away along one axis."""
    steps = [(axis, step) for axis in range(len(point)) for step in (1, -1)]
    moved = [(*point[:axis], point[axis] + step, *point[axis + 1 :]) for axis, step in steps]
    return [one for one in moved if all(0 <= place < len(axis) for place, axis in zip(one, axes, strict=True))]


def _rows(axes: list[tuple[float, ...]], points: list[list[Point]], like: Tensor) -> Tensor:
    """The numbers of each replica's points [points, R, numbers]; the empty point is order 2."""
    order_2 = (1.0, 0.0, 0.0, 1.0, 1.0)
    listed = [
        [tuple(axis[place] for axis, place in zip(axes, point, strict=True)) if point else order_2 for point in own]
        for own in points
    ]
    return torch.tensor(listed, dtype=like.dtype, device=like.device).transpose(0, 1)
