"""The agreement scorer of triangles: which of the three labels are equal is all that counts between them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from accord.encoders.replica import Noise, ReplicaLinear, edge_ends, fan_in_weights, replica_linear
from accord.encoders.scorers._agreement import NUM_COSINES, feature_cosine
from accord.encoders.scorers.triangles._scorer import TriangleScorer, TriangleScorerSpec
from accord.graphs import GraphBatch, Triangles

HIDDEN = 16  # channels where the specification gives none


class AgreementTriangleScorer(TriangleScorer):
    """A built agreement scorer."""

    def __init__(self, spec: TriangleScorerSpec, in_channels: int, num_states: int, seeds: Sequence[int]) -> None:
        super().__init__(spec, in_channels, num_states, seeds)
        self.hidden = spec.hidden or HIDDEN
        fan = 3 * in_channels + NUM_COSINES
        outputs = self.hidden + 1  # the hidden layer of the triangle, and the logit of the edge
        self.product = fan_in_weights(seeds, "triangle.product", (in_channels, outputs), fan)
        self.difference = fan_in_weights(seeds, "triangle.difference", (in_channels, outputs), fan)
        self.sum = fan_in_weights(seeds, "triangle.sum", (in_channels, outputs), fan)
        self.cosine = fan_in_weights(seeds, "triangle.cosine", (NUM_COSINES, outputs), fan)
        self.bias = fan_in_weights(seeds, "triangle.bias", (outputs,), fan)
        self.last = ReplicaLinear(self.hidden, 2, seeds, "triangle.last")
        self.corner = ReplicaLinear(in_channels, num_states, seeds, "triangle.corner")

    @property
    def width(self) -> int:
        """Numbers that scoring a triangle takes, of one replica."""
        return max(self.num_states**3, 3 * self.hidden)

    def prepare(self, h: Tensor, batch: GraphBatch, noise: Noise | None) -> tuple[Tensor, ...]:
        """Each edge's part of the hidden layer [edges, replicas, hidden] and logit of agreement, each node's scores."""
        source, target = edge_ends(h, batch)
        features = feature_cosine(batch).to(h.dtype)[:, None].expand(-1, self.num_replicas)
        cosines = torch.stack([functional.cosine_similarity(source, target, dim=-1), features], -1)
        both = replica_linear(source * target, self.product, self.bias)
        both = both + replica_linear((source - target).abs(), self.difference)
        both = both + replica_linear(source + target, self.sum) + replica_linear(cosines, self.cosine)
        return both[..., : self.hidden], both[..., self.hidden], self.corner(h)

    def score(self, prepared: tuple[Tensor, ...], triangles: Triangles, noise: Noise | None) -> Tensor:
        """Scores of each corner, a logit for three equal labels, and one for each side with equal labels."""
        hidden, pair, node = prepared
        together = self.drop(torch.relu(hidden[triangles.side].mean(1)), noise, 1, "triangle")
        every, each = self.last(together).unbind(-1)  # [triangles, replicas]
        same = torch.eye(self.num_states, dtype=every.dtype, device=every.device)
        three = same[:, :, None] * same[:, None, :]
        first, second, third = node[triangles.corner].unbind(1)
        total: Tensor = first[..., :, None, None] + second[..., None, :, None] + third[..., None, None, :]
        total = total + every[..., None, None, None] * three
        for side in range(3):
            logit = pair[triangles.side[:, side]] + each
            total = total + logit[..., None, None, None] * same.unsqueeze(-1 - side)
        return total


@dataclass(frozen=True)
class AgreementTriangles(TriangleScorerSpec):
    """Scores of each corner, a logit for three equal labels and one for each pair of equal labels.

    The logits are functions of products, differences, sums and cosines of the ends of the sides. There are few
    parameters, for few labels. What matters more than equality, as the parity of binary labels does, needs
    `LowRankTriangles`.

    Args:
        hidden: channels of the hidden layer with ReLU; None for 16.
        dropout: on the representations, and on the hidden layer.
    """

    kind = "agreement triangles"
    scorer = AgreementTriangleScorer
