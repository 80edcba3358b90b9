"""What every edge scorer is: node representations in, one table of scores for each undirected edge out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from accord.encoders._noise import Noise
from accord.encoders._spec import Spec
from accord.errors import GraphError, OptionError
from accord.graphs import GraphBatch

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
        tables = self.score(h, batch, attributes, noise)
        shape = (batch.num_edges, self.num_replicas, self.num_states, self.num_states)
        return tables.reshape(shape).transpose(0, 1).contiguous()

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

    @abstractmethod
    def score(self, h: Tensor, batch: GraphBatch, attributes: Tensor | None, noise: Noise | None) -> Tensor:
        """[edges, replicas, states, states], or the same numbers in fewer axes."""

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
