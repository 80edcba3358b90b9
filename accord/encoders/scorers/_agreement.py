"""The agreement scorer: one number for each edge, the logit that its ends have the same label."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from accord.encoders.replica import Noise, ReplicaLinear, edge_ends, fan_in_weights, replica_linear
from accord.encoders.scorers._scorer import Scorer, ScorerSpec
from accord.graphs import GraphBatch

NUM_COSINES = 2  # of the ends' representations, and of their features
COSINE_BLOCK_EDGES = 2**14  # edges whose features are gathered at a time


class AgreementEdgeScorer(Scorer):
    """A built agreement scorer."""

    def __init__(
        self, spec: ScorerSpec, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(spec, in_channels, num_states, seeds, edge_attributes)
        outputs, fan = spec.hidden or 1, 3 * in_channels + NUM_COSINES + edge_attributes
        self.product = fan_in_weights(seeds, "scorer.product", (in_channels, outputs), fan)
        self.difference = fan_in_weights(seeds, "scorer.difference", (in_channels, outputs), fan)
        self.sum = fan_in_weights(seeds, "scorer.sum", (in_channels, outputs), fan)
        self.cosine = fan_in_weights(seeds, "scorer.cosine", (NUM_COSINES, outputs), fan)
        self.attribute = self.attribute_weights(seeds, outputs, fan)
        self.bias = fan_in_weights(seeds, "scorer.bias", (outputs,), fan)
        self.last = ReplicaLinear(spec.hidden, 1, seeds, "scorer.last") if spec.hidden else None

    def score(
        self,
        prepared: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """The logit of agreement times the identity."""
        logit = self._logit(prepared, batch, attributes, noise, edges)
        return logit[..., None] * torch.eye(self.num_states, dtype=prepared.dtype, device=prepared.device)

    def _logit(
        self, h: Tensor, batch: GraphBatch, attributes: Tensor | None, noise: Noise | None, edges: slice | None
    ) -> Tensor:
        """[edges, replicas, 1]."""
        source, target = edge_ends(h, batch, edges)
        difference = source - target
        features = feature_cosine(batch).to(h.dtype)[:, None].expand(-1, self.num_replicas)
        features = features if edges is None else features[edges]
        cosines = torch.stack([functional.cosine_similarity(source, target, dim=-1), features], -1)
        logit = replica_linear(source * target, self.product, self.bias)
        logit = logit + replica_linear(difference.abs() if self.symmetric else difference, self.difference)
        logit = logit + replica_linear(source + target, self.sum) + replica_linear(cosines, self.cosine)
        if self.attribute is not None and attributes is not None:
            logit = logit + replica_linear(attributes, self.attribute)
        if self.last is None:
            return logit
        last: Tensor = self.last(self.drop(torch.relu(logit), noise, 1, "edge"))
        return last


def feature_cosine(batch: GraphBatch) -> Tensor:
    """The cosine of the features of the ends of each edge [edges], computed once."""

    def build() -> Tensor:
        unit = functional.normalize(batch.x, dim=-1)
        pairs = batch.topology.edge_index.t().split(COSINE_BLOCK_EDGES)
        return torch.cat([(unit[pair[:, 0]] * unit[pair[:, 1]]).sum(-1) for pair in pairs])

    return batch.cached("feature cosine", build)


@dataclass(frozen=True)
class AgreementScorer(ScorerSpec):
    """The logit of agreement on the diagonal of the table, zero elsewhere: few parameters, for few labels.

    The logit is a function of products, differences and sums of the ends' representations, their cosine, and the
    cosine of the ends' features.

    Args:
        hidden: channels of a hidden layer with ReLU; None for a linear map.
        dropout: on the representations, and on the hidden layer.
        symmetric: take absolute differences; False uses the stored direction of an edge.
    """

    kind = "agreement"
    scorer = AgreementEdgeScorer
