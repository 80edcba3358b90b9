"""Agreement: one number an edge, whether its ends have the same label."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from accord.encoders.replica import _initial
from accord.encoders.replica._linear import ReplicaLinear, replica_linear
from accord.encoders.replica._noise import Noise
from accord.encoders.replica._operators import edge_ends
from accord.encoders.scorers._scorer import SCORER_LAYER, Scorer, ScorerSpec
from accord.graphs import GraphBatch

COSINES = 2  # of the ends' representations, and of their features


@dataclass(frozen=True)
class AgreementScorer(ScorerSpec):
    """The logit of agreement on the diagonal of the table, zero elsewhere: few labels favour few numbers an edge.

    It is computed from products, differences and sums of the ends' representations, their cosine, and the cosine
    of the ends' features.

    Args:
        hidden: channels of a hidden layer with ReLU; None for a linear map.
        dropout: on the representations (and on the hidden layer).
        symmetric: take absolute differences; False lets the stored direction count.
    """

    kind = "agreement"
    hidden: int | None = None
    dropout: float = 0.0
    symmetric: bool = True

    def build(
        self, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int = 0
    ) -> "AgreementEdgeScorer":
        """One replica per seed."""
        return AgreementEdgeScorer(self, in_channels, num_states, seeds, edge_attributes)


class AgreementEdgeScorer(Scorer):
    """A built agreement scorer."""

    def __init__(
        self, spec: AgreementScorer, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(num_states, len(seeds), edge_attributes, spec.dropout)
        self.symmetric = spec.symmetric
        out, fan = spec.hidden or 1, 3 * in_channels + COSINES + edge_attributes
        self.product = _initial.fan_in(seeds, "scorer.product", (in_channels, out), fan)
        self.difference = _initial.fan_in(seeds, "scorer.difference", (in_channels, out), fan)
        self.sum = _initial.fan_in(seeds, "scorer.sum", (in_channels, out), fan)
        self.cosine = _initial.fan_in(seeds, "scorer.cosine", (COSINES, out), fan)
        self.attribute = (
            _initial.fan_in(seeds, "scorer.attribute", (edge_attributes, out), fan) if edge_attributes else None
        )
        self.bias = _initial.fan_in(seeds, "scorer.bias", (out,), fan)
        self.last = ReplicaLinear(spec.hidden, 1, seeds, "scorer.last") if spec.hidden else None

    def score(
        self,
        ready: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """The logit of agreement times the identity."""
        logit = self._logit(ready, batch, attributes, noise, edges)
        return logit[..., None] * torch.eye(self.num_states, dtype=ready.dtype, device=ready.device)

    def _logit(
        self, h: Tensor, batch: GraphBatch, attributes: Tensor | None, noise: Noise | None, edges: slice | None
    ) -> Tensor:
        """[edges, replicas, 1]."""
        source, target = edge_ends(h, batch, edges)
        difference = source - target
        features = self._feature_cosine(batch, h)
        features = features if edges is None else features[edges]
        cosines = torch.stack([functional.cosine_similarity(source, target, dim=-1), features], -1)
        logit = replica_linear(source * target, self.product, self.bias)
        logit = logit + replica_linear(difference.abs() if self.symmetric else difference, self.difference)
        logit = logit + replica_linear(source + target, self.sum) + replica_linear(cosines, self.cosine)
        if self.attribute is not None and attributes is not None:
            logit = logit + replica_linear(attributes, self.attribute)
        if self.last is None:
            return logit
        hidden = torch.relu(logit)
        hidden = hidden if noise is None else noise.dropout(hidden, self.dropout, SCORER_LAYER + 1)
        last: Tensor = self.last(hidden)
        return last

    def _feature_cosine(self, batch: GraphBatch, like: Tensor) -> Tensor:
        """The same for all replicas: [edges, replicas]."""

        def build() -> Tensor:
            unit = functional.normalize(batch.x, dim=-1)
            pairs = batch.topology.edge_index.t().split(BLOCK)
            return torch.cat([(unit[pair[:, 0]] * unit[pair[:, 1]]).sum(-1) for pair in pairs])

        return batch.cached("feature cosine", build).to(like.dtype)[:, None].expand(-1, self.num_replicas)


BLOCK = 2**14  # edges whose features are held at once
