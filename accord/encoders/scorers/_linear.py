"""The paper's linear scorer: both ends' representations side by side, then a linear map."""

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
class LinearScorer(ScorerSpec):
    """g(s, t) = W [v_s; v_t; attributes] + b, or a hidden layer with ReLU between.

    Args:
        hidden: channels of the hidden layer; None for none.
        dropout: on the representations (and on the hidden layer).
        symmetric: average g(s, t) with the transpose of g(t, s); False keeps the stored direction.
    """

    kind = "linear"
    hidden: int | None = None
    dropout: float = 0.0
    symmetric: bool = True

    def build(
        self, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int = 0
    ) -> "LinearEdgeScorer":
        """One replica per seed."""
        return LinearEdgeScorer(self, in_channels, num_states, seeds, edge_attributes)


class LinearEdgeScorer(Scorer):
    """A built linear scorer. The map acts on nodes first; only its results are brought to the edges."""

    def __init__(
        self, spec: LinearScorer, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(num_states, len(seeds), edge_attributes, spec.dropout)
        self.symmetric = spec.symmetric
        table, fan = num_states * num_states, 2 * in_channels + edge_attributes
        first = spec.hidden or table
        self.source = _initial.fan_in(seeds, "scorer.source", (in_channels, first), fan)
        self.target = _initial.fan_in(seeds, "scorer.target", (in_channels, first), fan)
        self.attribute = (
            _initial.fan_in(seeds, "scorer.attribute", (edge_attributes, first), fan) if edge_attributes else None
        )
        self.bias = _initial.fan_in(seeds, "scorer.bias", (first,), fan)
        self.last = ReplicaLinear(spec.hidden, table, seeds, "scorer.last") if spec.hidden else None

    def node_tables(self, h: Tensor, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor] | None:
        """Without hidden layer and attributes an edge's table is a sum of one for each end and one for all."""
        if self.last is not None or self.attribute is not None:
            return None
        at_source, at_target = self._ends(h if noise is None else noise.dropout(h, self.dropout, SCORER_LAYER))
        return at_source, at_target, self._symmetrised(self._square(self.bias))

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """Each node's part of the hidden layer as a source and as a target; without one, its tables.

        Without a hidden layer the score splits into a part for each end: one K x K table a node, not an edge.
        """
        if self.last is not None:
            return torch.cat([replica_linear(h, self.source), replica_linear(h, self.target)], -1)
        at_source, at_target = self._ends(h)
        # Each end of an oriented edge needs its own table only, so both travel together.
        return at_source if self.symmetric else torch.stack([at_source, at_target], 1)

    def score(
        self,
        ready: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """g(s, t), symmetrised where asked for."""
        shared = (
            self.bias
            if self.attribute is None or attributes is None
            else (replica_linear(attributes, self.attribute, self.bias))
        )
        if self.last is None:
            return self._score_linear(ready, shared, batch, edges)
        source_at, target_at = edge_ends(ready, batch, edges)
        width = ready.shape[-1] // 2
        along = source_at[..., :width] + target_at[..., width:] + shared
        if not self.symmetric:
            return self._tables(along, noise, 1)
        against = target_at[..., :width] + source_at[..., width:] + shared
        return (self._tables(along, noise, 1) + self._tables(against, noise, 2).transpose(-1, -2)) / 2

    def _score_linear(self, ready: Tensor, shared: Tensor, batch: GraphBatch, edges: slice | None) -> Tensor:
        here, there = edge_ends(ready, batch, edges)
        if not self.symmetric:
            return here[:, 0] + there[:, 1] + self._square(shared)
        return here + there.transpose(-1, -2) + self._symmetrised(self._square(shared))

    def _ends(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Tables [nodes, replicas, states, states] of nodes as sources and as targets.

        The average of both directions is taken on the weights; then one map gives both, each the other's transpose.
        """
        if not self.symmetric:
            return self._square(replica_linear(h, self.source)), self._square(replica_linear(h, self.target))
        weight = (self._square(self.source) + self._square(self.target).transpose(-1, -2)) / 2
        at_source = self._square(replica_linear(h, weight.flatten(-2)))
        return at_source, at_source.transpose(-1, -2)

    def _symmetrised(self, tables: Tensor) -> Tensor:
        return (tables + tables.transpose(-1, -2)) / 2 if self.symmetric else tables

    def _tables(self, hidden: Tensor, noise: Noise | None, place: int) -> Tensor:
        assert self.last is not None
        hidden = torch.relu(hidden)
        hidden = hidden if noise is None else noise.dropout(hidden, self.dropout, SCORER_LAYER + place)
        rows: Tensor = self.last(hidden)
        return self._square(rows)

    def _square(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:-1], self.num_states, self.num_states)
