"""The low-rank scorer of triangles: tables that are sums of outer products of one vector for each corner."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.encoders.replica import Noise, ReplicaLinear
from accord.encoders.scorers.triangles._scorer import TriangleScorer, TriangleScorerSpec
from accord.graphs import SIDES, GraphBatch, Triangles


class LowRankTriangleScorer(TriangleScorer):
    """A built low-rank scorer."""

    def __init__(self, spec: "LowRankTriangles", in_channels: int, num_states: int, seeds: Sequence[int]) -> None:
        super().__init__(spec, in_channels, num_states, seeds)
        self.first = ReplicaLinear(in_channels, spec.hidden, seeds, "triangle.first") if spec.hidden else None
        self.rank = spec.rank
        self.map = ReplicaLinear(spec.hidden or in_channels, (2 * spec.rank + 1) * num_states, seeds, "triangle.map")

    def prepare(self, h: Tensor, batch: GraphBatch, noise: Noise | None) -> tuple[Tensor, ...]:
        """Vectors over states of each node: for triples and pairs [nodes, replicas, rank, states], and for itself."""
        if self.first is not None:
            h = self.drop(torch.relu(self.first(h)), noise, 1)
        rows: Tensor = self.map(h)
        rows = rows.unflatten(-1, (2 * self.rank + 1, self.num_states))
        return rows[..., : self.rank, :], rows[..., self.rank : -1, :], rows[..., -1, :]

    def score(self, prepared: tuple[Tensor, ...], triangles: Triangles, noise: Noise | None) -> Tensor:
        """Outer products of all three corners and of each two of them, summed over the rank, and a vector for each."""
        triple, pair, own = (values[triangles.corner] for values in prepared)  # [triangles, 3, replicas, ...]
        total = torch.einsum("trka,trkb,trkc->trabc", *triple.unbind(1))
        first, second, third = own.unbind(1)
        total = total + first[..., :, None, None] + second[..., None, :, None] + third[..., None, None, :]
        for side, (one, two) in enumerate(SIDES):
            table = torch.einsum("trka,trkb->trab", pair[:, one], pair[:, two])
            total = total + table.unsqueeze(-1 - side)
        return total


@dataclass(frozen=True)
class LowRankTriangles(TriangleScorerSpec):
    """g(s, t, u) = sum over k of a_sk x a_tk x a_uk, and the same of pairs and single corners, with a = W v + b.

    Any symmetric interaction has this form if the rank is high enough. For few states and many labelled triangles.

    Args:
        hidden: channels of a hidden layer with ReLU before W; None for no hidden layer.
        dropout: on the representations, and on the hidden layer.
        rank: outer products that are summed.
    """

    kind = "low-rank triangles"
    scorer = LowRankTriangleScorer
    rank: int = 8
