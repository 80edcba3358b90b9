"""The paper's linear scorer: a linear map of both ends' representations side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from accord.encoders.replica import (
    Noise,
    ReplicaLinear,
    edge_ends,
    fan_in_weights,
    replica_linear,
    replica_linear_onto,
)
from accord.encoders.scorers._scorer import Scorer, ScorerSpec
from accord.graphs import GraphBatch


class LinearEdgeScorer(Scorer):
    """A built linear scorer. The map is applied to nodes first, edges only add up its results; or to edges if fewer."""

    def __init__(
        self, spec: ScorerSpec, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(spec, in_channels, num_states, seeds, edge_attributes)
        table, fan = num_states * num_states, 2 * in_channels + edge_attributes
        outputs = spec.hidden or table
        self.source = fan_in_weights(seeds, "scorer.source", (in_channels, outputs), fan)
        self.target = fan_in_weights(seeds, "scorer.target", (in_channels, outputs), fan)
        self.attribute = self.attribute_weights(seeds, outputs, fan)
        self.bias = fan_in_weights(seeds, "scorer.bias", (outputs,), fan)
        self.last = ReplicaLinear(spec.hidden, table, seeds, "scorer.last") if spec.hidden else None

    def forward(self, h: Tensor, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Score the edges.

        In forests, such as sequences, there are fewer edges than nodes. The map is then applied to edges, at once for
        both ends: tables of nodes, two for each, would be more work. A symmetric scorer needs only one for each.
        """
        if self.last is not None or self.symmetric or batch.num_edges > batch.num_nodes:
            return super().forward(h, batch, noise)
        source, target = edge_ends(self.drop(h, noise), batch)
        rows = replica_linear_onto(replica_linear(source, self.source, self.bias), target, self.target)
        attributes = self._attributes(batch)
        if self.attribute is not None and attributes is not None:
            rows = replica_linear_onto(rows, attributes, self.attribute)
        return self._by_replica(rows).contiguous()

    def node_tables(self, h: Tensor, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor] | None:
        """Without a hidden layer and attributes, an edge's table is one for each end plus one for all edges."""
        if self.last is not None or self.attribute is not None:
            return None
        at_source, at_target = self._end_tables(self.drop(h, noise))
        return at_source, at_target, self._symmetrised(self._square(self.bias))

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """Each node's part of the hidden layer as a source and as a target; without a hidden layer, its tables.

        Without a hidden layer the score is a sum over both ends, so the K x K tables are computed for nodes, not edges.
        """
        if self.last is not None:
            return torch.cat([replica_linear(h, self.source), replica_linear(h, self.target)], -1)
        at_source, at_target = self._end_tables(h)
        # The table of a target is the transpose of that of a source if symmetric; otherwise both are needed.
        return at_source if self.symmetric else torch.stack([at_source, at_target], 1)

    def score(
        self,
        prepared: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """g(s, t), averaged with the transpose of g(t, s) if symmetric."""
        shared: Tensor = self.bias
        if self.attribute is not None and attributes is not None:
            shared = replica_linear(attributes, self.attribute, self.bias)
        source, target = edge_ends(prepared, batch, edges)
        if self.last is None:
            return self._add_tables(source, target, shared)
        width = prepared.shape[-1] // 2
        along = source[..., :width] + target[..., width:] + shared
        if not self.symmetric:
            return self._map_hidden(along, noise, 1)
        against = target[..., :width] + source[..., width:] + shared
        return (self._map_hidden(along, noise, 1) + self._map_hidden(against, noise, 2).transpose(-1, -2)) / 2

    def _add_tables(self, source: Tensor, target: Tensor, shared: Tensor) -> Tensor:
        if not self.symmetric:
            return source[:, 0] + target[:, 1] + self._square(shared)
        return source + target.transpose(-1, -2) + self._symmetrised(self._square(shared))

    def _end_tables(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Tables [nodes, replicas, states, states] of nodes as sources and as targets.

        If symmetric, both directions are averaged in the weights: one map gives both tables, which are each other's
        transpose.
        """
        if not self.symmetric:
            return self._square(replica_linear(h, self.source)), self._square(replica_linear(h, self.target))
        weight = (self._square(self.source) + self._square(self.target).transpose(-1, -2)) / 2
        at_source = self._square(replica_linear(h, weight.flatten(-2)))
        return at_source, at_source.transpose(-1, -2)

    def _symmetrised(self, tables: Tensor) -> Tensor:
        return (tables + tables.transpose(-1, -2)) / 2 if self.symmetric else tables

    def _map_hidden(self, hidden: Tensor, noise: Noise | None, layer: int) -> Tensor:
        assert self.last is not None
        rows: Tensor = self.last(self.drop(torch.relu(hidden), noise, layer, "edge"))
        return self._square(rows)

    def _square(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:-1], self.num_states, self.num_states)


@dataclass(frozen=True)
class LinearScorer(ScorerSpec):
    """g(s, t) = W [v_s; v_t; attributes] + b, optionally with a hidden layer with ReLU.

    Args:
        hidden: channels of the hidden layer; None for no hidden layer.
        dropout: on the representations, and on the hidden layer.
        symmetric: average g(s, t) with the transpose of g(t, s); False uses the stored direction of an edge.
    """

    kind = "linear"
    scorer = LinearEdgeScorer
