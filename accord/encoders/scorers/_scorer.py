"""The interface of edge scorers, and what all of them share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from accord.encoders._spec import Spec
from accord.encoders.replica import Noise, fan_in_weights
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch, Rows

SCORING_BLOCK_ELEMENTS = 2**20  # tensor elements that scoring creates at a time when no gradient is needed
FIRST_SCORER_LAYER = 1_000  # layer numbers of dropout in scorers start here, above those of any encoder


class Scorer(nn.Module, ABC):
    """A built scorer; its parameters have a leading replica axis.

    Args:
        spec: the options.
        in_channels: channels of the node representations.
        num_states: values that a label can take.
        seeds: one for each replica.
        edge_attributes: attributes of an edge; 0 ignores them.
    """

    def __init__(
        self, spec: "ScorerSpec", in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__()
        if min(num_states, len(seeds)) < 1 or edge_attributes < 0:
            raise OptionError(
                f"{type(self).__name__}: num_states={num_states}, {len(seeds)} seeds and "
                f"edge_attributes={edge_attributes}; the first two must be at least 1, the last at least 0."
            )
        self.in_channels = in_channels
        self.num_states = num_states
        self.num_replicas = len(seeds)
        self.edge_attributes = edge_attributes
        self.dropout = spec.dropout
        self.symmetric = spec.symmetric

    def forward(self, h: Tensor, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Score the edges.

        Args:
            h: [nodes, replicas, channels], the output of an encoder for the batch.
            batch: the graphs; with edge attributes if the scorer was built for them.
            noise: randomness of a training step; None for evaluation.

        Returns:
            [replicas, edges, states, states]: rows are states of an edge's stored source, columns of its target.
        """
        attributes = self._attributes(batch)
        prepared = self.prepare(self.drop(h, noise), noise)
        per_node = prepared.numel() // max(len(prepared) * self.num_replicas, 1)
        size = max(SCORING_BLOCK_ELEMENTS // (self.num_replicas * max(self.num_states**2, per_node)), 1)
        if torch.is_grad_enabled() or noise is not None or batch.num_edges <= size:
            return self._by_replica(self.score(prepared, batch, attributes, noise)).contiguous()
        return self._score_in_blocks(prepared, batch, attributes, size)

    def drop(self, h: Tensor, noise: Noise | None, layer: int = 0, of: Rows = "node") -> Tensor:
        """Apply dropout to rows `of` nodes or edges; `layer` tells the places of dropout in a scorer apart."""
        return h if noise is None else noise.dropout(h, self.dropout, FIRST_SCORER_LAYER + layer, of)

    def node_tables(self, h: Tensor, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor] | None:
        """Tables that add up to the table of an edge; None if the scorer does not split in this way.

        A loss can be computed from them without the tables of all edges.

        Args:
            h: [nodes, replicas, channels].
            noise: randomness of a training step, as in `forward`; None for evaluation.

        Returns:
            The tables of nodes as sources and as targets, both [nodes, replicas, states, states], and one for all
            edges, [replicas, states, states].
        """
        return None

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """Everything that `score` needs of the nodes, [nodes, ...], computed once for all edges."""
        return h

    @abstractmethod
    def score(
        self,
        prepared: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """[edges, replicas, states, states], or the same elements in fewer axes.

        Args:
            prepared: the output of `prepare`.
            batch: the graphs.
            attributes: of the edges to score; None if the scorer uses none.
            noise: randomness of a training step; None for evaluation.
            edges: a range of edges, without gradient and noise; None for all.
        """

    def attribute_weights(self, seeds: Sequence[int], outputs: int, inputs: int) -> nn.Parameter | None:
        """Initial weights [replicas, edge_attributes, outputs]; None if the scorer uses no attributes.

        Args:
            seeds: one for each replica.
            outputs: width of the layer that they belong to.
            inputs: all inputs of that layer, which decide the scale of its weights.
        """
        if not self.edge_attributes:
            return None
        return fan_in_weights(seeds, "scorer.attribute", (self.edge_attributes, outputs), inputs)

    def _score_in_blocks(self, prepared: Tensor, batch: GraphBatch, attributes: Tensor | None, size: int) -> Tensor:
        """The same tables, with intermediate results for at most `size` edges at a time."""
        tables = prepared.new_empty(0)
        for first in range(0, batch.num_edges, size):
            edges = slice(first, first + size)
            part = self.score(prepared, batch, None if attributes is None else attributes[edges], None, edges)
            if not first:
                shape = (self.num_replicas, batch.num_edges, self.num_states, self.num_states)
                tables = part.new_empty(shape)  # in the precision of the scores, which autocast may change
            tables[:, edges] = self._by_replica(part)
        return tables

    def _by_replica(self, tables: Tensor) -> Tensor:
        return tables.reshape(-1, self.num_replicas, self.num_states, self.num_states).transpose(0, 1)

    def _attributes(self, batch: GraphBatch) -> Tensor | None:
        """The edge attributes of a batch; None if the scorer uses none."""
        if not self.edge_attributes:
            return None
        if batch.edge_attr is None or batch.num_edge_attributes != self.edge_attributes:
            if batch.edge_attr is None and batch.num_edges == 0:
                return batch.x.new_empty(0, self.edge_attributes)
            raise GraphError(
                f"{type(self).__name__}: the graphs have {batch.num_edge_attributes} attributes an edge, but the "
                f"scorer was built for {self.edge_attributes}. Give the edge_attr it was trained on."
            )
        return batch.edge_attr


@dataclass(frozen=True)
class ScorerSpec(Spec):
    """Specification of a scorer; `build` makes one. Subclasses set `kind` and `scorer`.

    Args:
        hidden: channels of a hidden layer with ReLU; None for no hidden layer.
        dropout: on the representations, and on the hidden layer.
        symmetric: make g(s, t) the transpose of g(t, s); False uses the stored direction of an edge.
    """

    scorer: ClassVar[type[Scorer]]
    hidden: int | None = None
    dropout: float = 0.0
    symmetric: bool = True

    def build(self, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int = 0) -> Scorer:
        """Build a scorer with initial weights for one replica per seed."""
        return type(self).scorer(self, in_channels, num_states, seeds, edge_attributes)
