"""What exact inference returns."""

from dataclasses import dataclass

import torch
from torch import Tensor

from accord.field import PairwiseField


@dataclass(frozen=True, eq=False)
class ExactBeliefs:
    """Beliefs without approximation, with the same attributes as those of `propagate`."""

    field: PairwiseField
    semiring: str
    node: Tensor  # [*replicas, nodes, states]
    edge: Tensor  # [*replicas, edges, states, states]
    log_partition: Tensor  # [*replicas, graphs]: log Z ("sum"), score of the optimum ("max")
    labels: Tensor  # [*replicas, nodes]: an optimum

    @property
    def converged(self) -> Tensor:
        """All true: nothing is iterated."""
        return torch.ones_like(self.log_partition, dtype=torch.bool)

    @property
    def sweeps(self) -> Tensor:
        """All zero."""
        return torch.zeros_like(self.log_partition, dtype=torch.long)

    @property
    def residual(self) -> Tensor:
        """All zero."""
        return torch.zeros_like(self.log_partition)

    def decode(self) -> Tensor:
        """A labelling [*replicas, nodes] with the highest joint score."""
        return self.labels
