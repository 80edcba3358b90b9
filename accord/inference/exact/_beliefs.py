"""What exact inference returns."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from accord.field import PairwiseField
from accord.field.factors import FactorField, RaggedField
from accord.inference._direct import Direct


@dataclass(frozen=True, eq=False)
class ExactBeliefs(Direct):
    """Beliefs without approximation, with the same attributes as those of `propagate`."""

    field: PairwiseField | FactorField
    semiring: str
    node: Tensor  # [*replicas, nodes, states]: -inf beyond a variable's own states
    # For each group of factors [*replicas, factors, states, ..., states], with the axes of the group's tables and -inf
    # beyond a variable's own states; None for rules. The edges of a PairwiseField are one group.
    factors: tuple[Tensor | None, ...]
    log_partition: Tensor  # [*replicas, graphs]: log Z ("sum"), score of the optimum ("max")
    labels: Tensor  # [*replicas, nodes]: an optimum

    @property
    def edge(self) -> Any:
        """[*replicas, edges, states, states]; of a field made by `PairwiseField.ragged`, a list with one for each edge.

        Raises:
            AttributeError: the field has factors that are not edges.
        """
        if isinstance(self.field, PairwiseField):
            return self.factors[0]
        if isinstance(self.field, RaggedField):
            return self.field.by_edge([group for group in self.factors if group is not None])
        raise AttributeError("these beliefs are of a field with factors; their tables are in `factors`")

    def decode(self) -> Tensor:
        """A labelling [*replicas, nodes] with the highest joint score."""
        return self.labels
