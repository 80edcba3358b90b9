"""What every edge scorer is: node representations in, one table of scores for each undirected edge out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from accord.encoders._spec import Spec
from accord.encoders.replica._noise import Noise
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch

BLOCK = 2**20  # numbers that are made of edges at once, where no gradient is wanted
SCORER_LAYER = 1_000  # numbers of the places of dropout in scorers start here, beyond any encoder's


class Scorer(nn.Module, ABC):
    """A built scorer; its parameters carry a leading replica axis."""

    def __init__(self, num_states: int, num_replicas: int, edge_attributes: int, dropout: float) -> None:
        super().__init__()
        if min(num_states, num_replicas) < 1 or edge_attributes < 0:
            raise OptionError(
                f"{type(self).__name__}: num_states={num_states}, {num_replicas} seeds and "
                f"edge_attributes={edge_attributes}; the first two must be at least 1."
            )
        self.num_states = num_states
        self.num_replicas = num_replicas
        self.edge_attributes = edge_attributes
        self.dropout = dropout

    def forward(self, h: Tensor, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Score the edges.

        Args:
            h: [nodes, replicas, channels], what an encoder made of the batch.
            batch: the graphs; with edge attributes where the scorer was built for them.
            noise: randomness of a training step; None for evaluation, without any.

        Returns:
            [replicas, edges, states, states]: rows are states of an edge's source as stored, columns of its target.
        """
        attributes = self._attributes(batch)
        h = h if noise is None else noise.dropout(h, self.dropout, SCORER_LAYER)
        ready = self.prepare(h, noise)
        numbers = self.num_replicas * max(self.num_states**2, ready.numel() // max(len(ready) * self.num_replicas, 1))
        size = max(BLOCK // numbers, 1)
        if torch.is_grad_enabled() or noise is not None or batch.num_edges <= size:
            return self._by_replica(self.score(ready, batch, attributes, noise)).contiguous()
        return self._score_in_blocks(ready, batch, attributes, size)

    def _score_in_blocks(self, ready: Tensor, batch: GraphBatch, attributes: Tensor | None, size: int) -> Tensor:
        """The same tables, but what is made of edges on the way never exceeds a block of `size` edges."""
        tables = ready.new_empty(0)
        for first in range(0, batch.num_edges, size):
            edges = slice(first, first + size)
            part = self.score(ready, batch, None if attributes is None else attributes[edges], None, edges)
            if not first:
                shape = (self.num_replicas, batch.num_edges, self.num_states, self.num_states)
                tables = part.new_empty(shape)  # of the precision that scores come in, which autocast may decide
            tables[:, edges] = self._by_replica(part)
        return tables

    def _by_replica(self, tables: Tensor) -> Tensor:
        return tables.reshape(-1, self.num_replicas, self.num_states, self.num_states).transpose(0, 1)

    def node_tables(self, h: Tensor, noise: Noise | None) -> tuple[Tensor, Tensor, Tensor] | None:
        """Tables whose sum is an edge's: of nodes as sources, as targets, and one for all edges; None if it has none.

        Args:
            h: [nodes, replicas, channels].
            noise: randomness of a training step, as in `forward`; None for evaluation.

        Returns:
            Two tensors [nodes, replicas, states, states] and one [replicas, states, states], by which a loss can be
            had without the scores of every edge.
        """
        return None

    def prepare(self, h: Tensor, noise: Noise | None) -> Tensor:
        """What `score` takes of every node [nodes, ...], made once for all edges."""
        return h

    @abstractmethod
    def score(
        self,
        ready: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """[edges, replicas, states, states], or the same numbers in fewer axes.

        Args:
            ready: what `prepare` made of the nodes.
            batch: the graphs.
            attributes: of the edges that are asked for.
            noise: randomness of a training step.
            edges: a range of them, without gradient and noise; None for all.
        """

    def _attributes(self, batch: GraphBatch) -> Tensor | None:
        """Edge attributes, where the scorer was built for them."""
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


class ScorerSpec(Spec, ABC):
    """What a scorer shall be; `build` makes one."""

    @abstractmethod
    def build(self, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int = 0) -> Scorer:
        """Draw initial weights for one replica per seed."""
