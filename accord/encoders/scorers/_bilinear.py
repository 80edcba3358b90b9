"""The paper's bilinear scorer: the outer product of what each end says about its own states."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.encoders.replica import _initial
from accord.encoders.replica._linear import ReplicaLinear, replica_linear
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import edge_ends
from accord.encoders.scorers._scorer import SCORER_LAYER, Scorer, ScorerSpec
from accord.graphs import GraphBatch


@dataclass(frozen=True)
class BilinearScorer(ScorerSpec):
    """g(s, t) = (W v_s)(W v_t)^T, which is the transpose of g(t, s) by itself.

    Args:
        hidden: channels of a hidden layer with ReLU before W; None for none.
        dropout: on the representations (and on the hidden layer).
        symmetric: False gives targets a matrix of their own, so that the stored direction counts.
    """

    kind = "bilinear"
    hidden: int | None = None
    dropout: float = 0.0
    symmetric: bool = True

    def build(
        self, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int = 0
    ) -> "BilinearEdgeScorer":
        """One replica per seed."""
        return BilinearEdgeScorer(self, in_channels, num_states, seeds, edge_attributes)


class BilinearEdgeScorer(Scorer):
    """A built bilinear scorer; edge attributes are appended to the representations of both ends."""

    def __init__(
        self, spec: BilinearScorer, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(num_states, len(seeds), edge_attributes, spec.dropout)
        self.first = ReplicaLinear(in_channels, spec.hidden, seeds, "scorer.first") if spec.hidden else None
        width = spec.hidden or in_channels
        # A symmetric scorer uses its one half at both ends.
        self.halves = 1 if spec.symmetric else 2
        shape, fan = self.halves * num_states, width + edge_attributes
        self.weight = _initial.fan_in(seeds, "scorer.weight", (width, shape), fan)
        self.attribute = (
            _initial.fan_in(seeds, "scorer.attribute", (edge_attributes, shape), fan) if edge_attributes else None
        )

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """What each node says about its states."""
        if self.first is not None:
            h = torch.relu(self.first(h))
            h = h if noise is None else noise.dropout(h, self.dropout, SCORER_LAYER + 1)
        return replica_linear(h, self.weight)

    def score(
        self,
        ready: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """One outer product an edge."""
        source, target = edge_ends(ready, batch, edges)
        if self.attribute is not None and attributes is not None:
            shift = replica_linear(attributes, self.attribute)
            source, target = source + shift, target + shift
        states = self.num_states
        return source[..., :states, None] * target[..., None, -states:]
