"""The combination chosen with care: few candidates, from coarse to fine, and no change that noise could explain.

The search starts from a few candidates spread over the grid and moves to better neighbours. Validation data are a
sample: the node network alone is kept unless the best candidate beats it by more than noise explains, at the level, in
node accuracy or in the likelihood of the labels, by standard errors of their difference, paired over graphs. Of
candidates of equal score the likeliest of the eight that change least is taken. A field that fits one density of edges
may fail at another: where new graphs may be denser, candidates that would do harm there are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.evaluation import level_score, mean_log_likelihood, needs_probabilities
from accord.field import PairwiseField
from accord.graphs import Topology
from accord.inference import propagate
from accord.learning.objectives import rank
from accord.learning.selection._combination import FieldChoice, Shrinkage
from accord.learning.selection._grid import CombinationGrid, chunk_bytes

SIGMAS = 1.5  # standard errors that a gain must exceed: the best of many candidates is lucky by about as much
LIKELIER_SIGMAS = 2.0  # the same for the likelihood, of which only one candidate's is compared
ROUNDS = 4  # of moves to better neighbours
TIED = 8  # candidates of equal score whose likelihood is computed
ALONE = (0.0, 1.0, 1.0, 0.0)  # sharpness to normaliser: uniform tables, so the node network alone decides
CACHE_BYTES = 2**23  # of edge tables solved at once on a CPU: larger ones leave the cache and take longer
FEW_GRAPHS = 10  # with fewer validation graphs, nodes are the units of the standard error
LEAST_LOG = -30.0  # log-probability that counts for a label held to be impossible
# Steps along sharpness, power and node weight. Beside single steps, those that change the strength of edges little: a
# sharper table with less of it divided out, or with more weight on the nodes.
MOVES = (
    *((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1)),
    *((1, -1, 0), (-1, 1, 0), (1, 0, 1), (-1, 0, -1)),
)
ORDERED = 3  # sharpness, power and node weight are scales; of the other axes every value is a neighbour

Point = tuple[int, ...]  # position on each axis of the grid; () is the node network alone


@dataclass(eq=False)
class _Solved:
    """What came of candidates: one row for each, in the order in which they were tried."""

    rows: Tensor  # [candidates, R, numbers]
    rank: Tensor  # [candidates, R]
    score: Tensor  # [candidates, R]
    changes: Tensor  # [candidates, R], labels that differ from the node network's
    units: Tensor  # [2, candidates, R, units], what is right on each graph or node: at the level, and nodes

    def and_more(self, more: "_Solved") -> "_Solved":
        return _Solved(
            **{
                name: torch.cat([value, getattr(more, name)], int(name == "units"))
                for name, value in vars(self).items()
            }
        )


def choose_carefully(
    node: Tensor,
    edge: Tensor,
    targets: Tensor,
    topology: Topology,
    level: str,
    grid: CombinationGrid,
    damping: float,
    shrinkage: Shrinkage | None = None,
    denser: float = 1.0,
) -> FieldChoice:
    """A candidate of the grid, or the node network alone, for each replica.

    Arguments are those of `choose_combination`, and `denser`: how many times as many edges new graphs may have.
    """
    search = _Search(node, edge, targets, topology, level, damping, shrinkage)
    axes = _axes(grid)
    replicas = node.shape[0]
    tried: list[list[Point]] = [[(), *_coarse(axes)] for _ in range(replicas)]
    solved = search.explore(
        tried, lambda point: _neighbours(axes, point), lambda points: _rows(axes, grid, points, node)
    )
    if denser > 1:
        search.leave_out_harmful(solved, denser)
    winner = torch.tensor([search.pick(solved, replica) for replica in range(replicas)], device=node.device)
    score = solved.score.gather(0, winner[None])[0]
    return FieldChoice.from_rows(solved.rows[winner, torch.arange(replicas)], score.to(node.dtype), shrinkage)


class _Search:
    """Validation data, and what candidates make of them."""

    def __init__(
        self,
        node: Tensor,
        edge: Tensor,
        targets: Tensor,
        topology: Topology,
        level: str,
        damping: float,
        shrinkage: Shrinkage | None,
    ) -> None:
        self.node, self.edge, self.topology, self.level = node, edge, topology, level
        self.targets = targets.expand(node.shape[:2])
        self.damping, self.shrinkage = damping, shrinkage
        self.alone = node.argmax(-1)
        self.by_graph = topology.num_graphs >= FEW_GRAPHS
        known = (self.targets >= 0).double()
        nodes = self._per_graph(known) if self.by_graph else known
        by_level = (nodes > 0).double() if self.by_graph and level == "graph" else nodes
        self.weight = torch.stack([by_level, nodes])  # [2, R, units]

    def explore(
        self,
        tried: list[list[Point]],
        near: Callable[[Point], list[Point]],
        rows: Callable[[list[list[Point]]], Tensor],
    ) -> _Solved:
        """Solve the points that are given for each replica, then the neighbours of the best ones, round by round.

        Args:
            tried: points of each replica; the first is what a candidate has to beat. Further ones are added.
            near: points one step away.
            rows: candidates [candidates, R, numbers] of points.
        """
        solved = self.solve(rows(tried))
        for _ in range(ROUNDS):
            best = (1 + solved.rank[1:].argmax(0)).tolist()  # of the candidates: the first point is none
            fresh = [
                [point for point in near(points[place]) if point not in points]
                for points, place in zip(tried, best, strict=True)
            ]
            most = max(map(len, fresh))
            if not most:
                break
            # Replicas with fewer neighbours repeat their best candidate, so that all are solved together.
            padded = [
                new + [points[place]] * (most - len(new)) for new, points, place in zip(fresh, tried, best, strict=True)
            ]
            for points, new in zip(tried, padded, strict=True):
                points += new
            solved = solved.and_more(self.solve(rows(padded)))
        return solved

    def solve(self, rows: Tensor) -> _Solved:
        """Solve candidates [candidates, R, numbers], as many at once as fit into memory."""
        room = chunk_bytes(self.edge.device)
        if self.edge.device.type == "cpu":
            room = min(room, CACHE_BYTES)
        size = max(1, room // max(1, self.edge.numel() * self.edge.element_size()))
        parts = [self._solve(chunk) for chunk in rows.split(size)]
        solved = parts[0]
        for part in parts[1:]:
            solved = solved.and_more(part)
        return solved

    def _solve(self, rows: Tensor) -> _Solved:
        choice = FieldChoice.from_rows(rows, rows.new_zeros(rows.shape[:2]), self.shrinkage)
        field = choice.field(self.node, self.edge, self.topology)
        labels, logs = self._labels(choice, field), None
        if needs_probabilities(self.level):
            logs = choice.beliefs(field, "sum", self.damping).node
        return _Solved(
            rows,
            # A task without validation labels has no score; all candidates are equal then.
            rank(labels, self.targets, self.topology, self.level, logs).nan_to_num(-torch.inf),
            level_score(self.level, labels, self.targets, self.topology, logs),
            (labels != self.alone).sum(-1),
            self._units(labels, logs),
        )

    def leave_out_harmful(self, solved: _Solved, denser: float) -> None:
        """Rank last what makes more nodes wrong than the node network alone, beyond noise, with edges counted so often.

        Edges that count more often have about the effect of more edges.
        """
        known, weight = (self.targets >= 0).double(), self.weight[1]
        alone = self._right(self.alone, known)
        better = (solved.rank > solved.rank[0]).any(1).nonzero().flatten().tolist()
        for place in better:
            row = solved.rows[place]
            choice = FieldChoice.from_rows(row, row.new_zeros(len(row)), self.shrinkage)
            field = choice.field(self.node, self.edge, self.topology)
            labels = self._labels(choice, field.with_potentials(edge=field.edge * denser))
            gain = self._right(labels, known) - alone
            mean = gain.sum(-1) / weight.sum(-1)
            error = (gain - mean[:, None] * weight).square().sum(-1).sqrt() / weight.sum(-1)
            solved.rank[place, mean < -SIGMAS * error] = -torch.inf

    def _right(self, labels: Tensor, known: Tensor) -> Tensor:
        """How many nodes are right [..., R, units]."""
        right = (labels == self.targets) * known
        return self._per_graph(right) if self.by_graph else right

    def _labels(self, choice: FieldChoice, field: PairwiseField) -> Tensor:
        """Joint labels [candidates, R, nodes]; on forests the best state by exact max-marginals, which is faster."""
        if field.peeling.is_forest and field.structure.paths is None:
            return propagate(field, semiring="max").node.argmax(-1)
        return choice.labels(field, self.damping)

    def _units(self, labels: Tensor, logs: Tensor | None) -> Tensor:
        """What is right on each unit [2, candidates, R, units], at the level and in nodes; sums of it are scores."""
        known = (self.targets >= 0).double()
        nodes = self._right(labels, known)
        if self.level == "likelihood":
            assert logs is not None
            own = logs.gather(-1, self.targets.clamp_min(0).expand_as(labels)[..., None])[..., 0]
            likely = own.double().clamp_min(LEAST_LOG) * known
            return torch.stack([self._per_graph(likely) if self.by_graph else likely, nodes])
        if self.level == "graph" and self.by_graph:
            return torch.stack([(nodes == self.weight[1]) * self.weight[0], nodes])
        return torch.stack([nodes, nodes])

    def _per_graph(self, values: Tensor) -> Tensor:
        return values.new_zeros(*values.shape[:-1], self.topology.num_graphs).index_add_(
            -1, self.topology.graph, values
        )

    def pick(self, solved: _Solved, replica: int) -> int:
        """The candidate that one replica takes; the first is the node network alone."""
        ranks = solved.rank[:, replica]
        best = int(ranks.argmax())
        if bool(ranks[0] >= ranks[best]):
            return 0
        if self._within_noise(solved, best, replica) and not self._is_likelier(solved, best, replica):
            return 0
        tied = (ranks == ranks[best]).nonzero().flatten()
        tied = least_changing(tied, solved.changes[tied, replica])
        if len(tied) == 1:
            return int(tied[0])
        likelihood = self._likelihood(solved.rows[tied, replica], replica)
        return int(tied[likelihood.argmax()])  # of equal likelihoods the first, which changes least

    def _within_noise(self, solved: _Solved, best: int, replica: int) -> bool:
        """Whether the best candidate is within noise of the node network alone, by both measures."""
        if self.level in ("f1", "auc"):  # not sums over graphs or nodes
            return False
        gain = solved.units[:, best, replica] - solved.units[:, 0, replica]
        weight = self.weight[:, replica]
        mean = gain.sum(-1) / weight.sum(-1)
        error = (gain - mean[:, None] * weight).square().sum(-1).sqrt() / weight.sum(-1)
        return bool((mean <= SIGMAS * error).all())

    def _is_likelier(self, solved: _Solved, best: int, replica: int) -> bool:
        """Whether a candidate makes the labels more likely than the node network alone does, beyond noise.

        With few graphs, accuracies of whole graphs tell little apart; the likelihood of every node tells more.
        """
        own = self.targets[replica]
        known = (own >= 0).double()
        both = [self._marginals(row, replica)[0] for row in solved.rows[[0, best], replica]]
        alone, joint = (logs.gather(-1, own.clamp_min(0)[:, None])[:, 0].double().clamp_min(LEAST_LOG) for logs in both)
        gain, weight = (joint - alone) * known, self.weight[1, replica]
        gain = self._per_graph(gain) if self.by_graph else gain
        mean = gain.sum() / weight.sum()
        error = (gain - mean * weight).square().sum().sqrt() / weight.sum()
        return bool(mean > LIKELIER_SIGMAS * error)

    def _likelihood(self, rows: Tensor, replica: int) -> Tensor:
        """Of the labels of one replica, by each of some candidates [candidates, numbers]."""
        own = self.targets[replica : replica + 1]
        return torch.stack([mean_log_likelihood(self._marginals(row, replica), own)[0] for row in rows])

    def _marginals(self, row: Tensor, replica: int) -> Tensor:
        """Log-marginals [1, nodes, states] of one replica by a candidate [numbers]."""
        own = slice(replica, replica + 1)
        shares = None if self.shrinkage is None else (self.shrinkage[0][own], self.shrinkage[1][own])
        choice = FieldChoice.from_rows(row[None], row.new_zeros(1), shares)
        field = choice.field(self.node[own], self.edge[own], self.topology)
        return choice.beliefs(field, "sum", self.damping).node


def least_changing(tied: Tensor, changes: Tensor) -> Tensor:
    """Of candidates of equal score the few whose likelihood is compared: those that change least, in that order."""
    return tied[changes.argsort(stable=True)][:TIED]


def _axes(grid: CombinationGrid) -> list[list[float]]:
    """The values on each axis: scales in rising order, without the sharpness 0 that is the node network alone."""
    columns = [list(dict.fromkeys(column)) for column in zip(*grid.candidates(), strict=True)]
    scales = [sorted(column) for column in columns[:ORDERED]]
    scales[0] = [value for value in scales[0] if value > 0]
    return scales + columns[ORDERED:]


def _coarse(axes: list[list[float]]) -> list[Point]:
    """Every sharpness, with the middle of the other scales and the first value of every other axis."""
    middle = tuple(len(axis) // 2 for axis in axes[1:ORDERED])
    return [(place, *middle, *(0,) * (len(axes) - ORDERED)) for place in range(len(axes[0]))]


def _neighbours(axes: list[list[float]], point: Point) -> list[Point]:
    """Points one step away."""
    steps = [move + (0,) * (len(axes) - ORDERED) for move in MOVES]
    found = [tuple(place + step for place, step in zip(point, move, strict=True)) for move in steps if point]
    for axis in range(ORDERED, len(point)):
        found += [(*point[:axis], place, *point[axis + 1 :]) for place in range(len(axes[axis]))]
    inside = [p for p in found if all(0 <= place < len(axis) for place, axis in zip(p, axes, strict=True))]
    return [p for p in inside if p != point]


def _rows(axes: list[list[float]], grid: CombinationGrid, points: list[list[Point]], like: Tensor) -> Tensor:
    """The numbers of each replica's points [points, R, numbers]."""
    alone = (*ALONE, *grid.candidates()[0][len(ALONE) :])
    columns = [
        [tuple(axis[place] for axis, place in zip(axes, point, strict=True)) if point else alone for point in own]
        for own in points
    ]
    return torch.tensor(columns, dtype=like.dtype, device=like.device).transpose(0, 1)
