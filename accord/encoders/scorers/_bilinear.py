"""The paper's bilinear scorer: an outer product of one vector over states for each end."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.encoders.replica import Noise, ReplicaLinear, edge_ends, fan_in_weights, replica_linear
from accord.encoders.scorers._scorer import Scorer, ScorerSpec
from accord.graphs import GraphBatch


class BilinearEdgeScorer(Scorer):
    """A built bilinear scorer; edge attributes are appended to the representations of both ends."""

    def __init__(
        self, spec: ScorerSpec, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(spec, in_channels, num_states, seeds, edge_attributes)
        self.first = ReplicaLinear(in_channels, spec.hidden, seeds, "scorer.first") if spec.hidden else None
        width = spec.hidden or in_channels
        # A symmetric scorer uses one matrix at both ends; otherwise the second half of the columns is for targets.
        outputs, fan = num_states if spec.symmetric else 2 * num_states, width + edge_attributes
        self.weight = fan_in_weights(seeds, "scorer.weight", (width, outputs), fan)
        self.attribute = self.attribute_weights(seeds, outputs, fan)

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """The vector over states of each node: [nodes, replicas, states], or twice as wide with one for each role."""
        if self.first is not None:
            h = self.drop(torch.relu(self.first(h)), noise, 1)
        return replica_linear(h, self.weight)

    def score(
        self,
        prepared: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """One outer product for each edge."""
        source, target = edge_ends(prepared, batch, edges)
        if self.attribute is not None and attributes is not None:
            shift = replica_linear(attributes, self.attribute)
            source, target = source + shift, target + shift
        states = self.num_states
        return source[..., :states, None] * target[..., None, -states:]


@dataclass(frozen=True)
class BilinearScorer(ScorerSpec):
    """g(s, t) = (W v_s)(W v_t)^T, which is the transpose of g(t, s).

    Args:
        hidden: channels of a hidden layer with ReLU before W; None for no hidden layer.
        dropout: on the representations, and on the hidden layer.
        symmetric: False gives targets their own matrix, so that the stored direction of an edge matters.
    """

    kind = "bilinear"
    scorer = BilinearEdgeScorer
