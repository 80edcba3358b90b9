"""A full bilinear form: every pair of states has its own matrix between the representations of both ends."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.encoders.replica import Noise, ReplicaLinear, edge_ends, fan_in_weights, replica_linear
from accord.encoders.scorers._scorer import Scorer, ScorerSpec
from accord.graphs import GraphBatch


class FullBilinearEdgeScorer(Scorer):
    """A built full bilinear scorer; edge attributes add a linear term to the table."""

    def __init__(
        self, spec: ScorerSpec, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(spec, in_channels, num_states, seeds, edge_attributes)
        self.first = ReplicaLinear(in_channels, spec.hidden, seeds, "scorer.first") if spec.hidden else None
        width = spec.hidden or in_channels
        self.weight = fan_in_weights(seeds, "scorer.weight", (width, num_states, num_states, width), width)
        self.bias = fan_in_weights(seeds, "scorer.bias", (num_states, num_states), width)
        self.attribute = self.attribute_weights(seeds, num_states**2, width + edge_attributes)

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """The representations [nodes, replicas, channels], after the hidden layer if there is one."""
        return h if self.first is None else self.drop(torch.relu(self.first(h)), noise, 1)

    def score(
        self,
        prepared: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """v_s^T W_ab v_t + b_ab; if symmetric, both directions are averaged in the weights."""
        source, target = edge_ends(prepared, batch, edges)
        weight: Tensor = self.weight
        bias: Tensor = self.bias
        if self.symmetric:
            weight = (weight + weight.permute(0, 4, 3, 2, 1)) / 2
            bias = (bias + bias.transpose(-1, -2)) / 2
        half = replica_linear(source, weight.flatten(2)).view(*source.shape[:2], self.num_states**2, target.shape[-1])
        tables = (half @ target[..., None]).view(*source.shape[:2], self.num_states, self.num_states) + bias
        if self.attribute is None or attributes is None:
            return tables
        shift = replica_linear(attributes, self.attribute).view_as(tables)
        return tables + ((shift + shift.transpose(-1, -2)) / 2 if self.symmetric else shift)


@dataclass(frozen=True)
class FullBilinearScorer(ScorerSpec):
    """g(s, t)[a, b] = v_s^T W_ab v_t + b_ab: what the authors' code calls bilinear (the paper's is `BilinearScorer`).

    Its size grows with the square of channels times states, so it needs many training edges or strong regularisation.

    Args:
        hidden: channels of a hidden layer with ReLU before; None for no hidden layer.
        dropout: on the representations, and on the hidden layer.
        symmetric: average g(s, t) with the transpose of g(t, s); False uses the stored direction of an edge.
    """

    kind = "full-bilinear"
    scorer = FullBilinearEdgeScorer
