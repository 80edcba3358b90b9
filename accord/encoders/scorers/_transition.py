"""One table for all edges: the transitions of a linear-chain CRF."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from accord.encoders.replica import Noise, constant_weights
from accord.encoders.scorers._scorer import Scorer, ScorerSpec
from accord.graphs import GraphBatch


class TransitionEdgeScorer(Scorer):
    """A built transition scorer; it reads neither nodes nor edge attributes."""

    def __init__(
        self, spec: ScorerSpec, in_channels: int, num_states: int, seeds: Sequence[int], edge_attributes: int
    ) -> None:
        super().__init__(spec, in_channels, num_states, seeds, edge_attributes)
        self.table = constant_weights(seeds, (num_states, num_states), 0.0)

    def forward(self, h: Tensor, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """The table of each replica [replicas, edges, states, states], as a view: solvers see that it is shared."""
        return self.score(h, batch, None, noise).transpose(0, 1)

    def score(
        self,
        prepared: Tensor,
        batch: GraphBatch,
        attributes: Tensor | None,
        noise: Noise | None,
        edges: slice | None = None,
    ) -> Tensor:
        """The same table for every edge."""
        count = batch.num_edges if edges is None else len(range(batch.num_edges)[edges])
        table = (self.table + self.table.transpose(-1, -2)) / 2 if self.symmetric else self.table
        return table.expand(count, *table.shape)


@dataclass(frozen=True)
class TransitionScorer(ScorerSpec):
    """One learned table for all edges, whatever their ends; it starts at zero.

    Args:
        hidden: not used.
        dropout: not used.
        symmetric: make the table symmetric; False uses the stored direction of an edge, as sequences need it.
    """

    kind = "transition"
    scorer = TransitionEdgeScorer
    symmetric: bool = False
