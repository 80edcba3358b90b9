"""The interface of triangle scorers, and what all of them share."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from accord.encoders._spec import Spec
from accord.encoders.replica import Noise
from accord.errors import OptionError
from accord.graphs import GraphBatch, Rows, Triangles, topology_triangles

MOST_STATES = 16  # a triangle has a number for each triple of states
SCORING_BLOCK_ELEMENTS = 2**22  # tensor elements that scoring creates at a time when no gradient is needed
FIRST_LAYER = 1_000  # layer numbers of dropout in scorers start here, above those of any encoder


def check_table_size(num_states: int) -> None:
    """Refuse labels with so many states that tables of triples become too large."""
    if num_states > MOST_STATES:
        raise OptionError(
            f"order 3: labels have {num_states} states, and every triangle would have {num_states**3} numbers, one for "
            f"each triple. At most {MOST_STATES} states are taken. Use order=2."
        )


class TriangleScorer(nn.Module, ABC):
    """A built triangle scorer; its parameters have a leading replica axis.

    Scores follow the corners: with two corners exchanged, the table has the two axes exchanged.

    Args:
        spec: the options.
        in_channels: channels of the node representations.
        num_states: values that a label can take.
        seeds: one for each replica.
    """

    def __init__(self, spec: "TriangleScorerSpec", in_channels: int, num_states: int, seeds: Sequence[int]) -> None:
        super().__init__()
        check_table_size(num_states)
        if min(num_states, len(seeds)) < 1:
            raise OptionError(f"{type(spec).__name__}: {num_states} states and {len(seeds)} seeds; give one or more.")
        self.num_states, self.num_replicas, self.dropout = num_states, len(seeds), spec.dropout

    def forward(self, h: Tensor, batch: GraphBatch, noise: Noise | None = None) -> Tensor:
        """Score the triangles.

        Args:
            h: [nodes, replicas, channels], the output of an encoder for the batch.
            batch: the graphs.
            noise: randomness of a training step; None for evaluation.

        Returns:
            [replicas, triangles, states, states, states]; axis i belongs to corner i of `topology_triangles`.
        """
        triangles = topology_triangles(batch.topology)
        prepared = self.prepare(self.drop(h, noise), batch, noise)
        shape = (self.num_replicas, len(triangles), *(self.num_states,) * 3)
        size = max(SCORING_BLOCK_ELEMENTS // (self.num_replicas * self.width), 1)
        if torch.is_grad_enabled() or noise is not None or len(triangles) <= size:
            return self.score(prepared, triangles, noise).transpose(0, 1)
        tables = h.new_empty(shape)
        for first in range(0, len(triangles), size):
            rows = slice(first, first + size)
            some = Triangles(triangles.corner[rows], triangles.side[rows], triangles.turned[rows])
            tables[:, rows] = self.score(prepared, some, None).transpose(0, 1)
        return tables

    @property
    def width(self) -> int:
        """Numbers that scoring a triangle takes, of one replica."""
        return self.num_states**3

    def drop(self, h: Tensor, noise: Noise | None, layer: int = 0, of: Rows = "node") -> Tensor:
        """Apply dropout to rows `of` nodes or triangles; `layer` tells the places of dropout in a scorer apart."""
        return h if noise is None else noise.dropout(h, self.dropout, FIRST_LAYER + layer, of)

    @abstractmethod
    def prepare(self, h: Tensor, batch: GraphBatch, noise: Noise | None) -> tuple[Tensor, ...]:
        """What `score` needs of nodes and edges, computed once for all triangles."""

    @abstractmethod
    def score(self, prepared: tuple[Tensor, ...], triangles: Triangles, noise: Noise | None) -> Tensor:
        """[triangles, replicas, states, states, states] of some triangles."""


@dataclass(frozen=True)
class TriangleScorerSpec(Spec):
    """Specification of a triangle scorer; `build` makes one. Subclasses set `kind` and `scorer`."""

    scorer: ClassVar[type[TriangleScorer]]
    hidden: int | None = None
    dropout: float = 0.0

    def build(self, in_channels: int, num_states: int, seeds: Sequence[int]) -> TriangleScorer:
        """Build a scorer with initial weights for one replica per seed."""
        return type(self).scorer(self, in_channels, num_states, seeds)
