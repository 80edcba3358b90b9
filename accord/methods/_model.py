"""What all trained methods are: graphs in, a field for every replica out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, Semiring
from accord.learning import Replicas, Report, Row
from accord.methods._recipe import Recipe


@dataclass(frozen=True)
class Shape:
    """Sizes that the data fix."""

    num_features: int
    num_states: int
    num_tasks: int = 1
    edge_attributes: int = 0


class FieldModel(Protocol):
    """A trained method."""

    history: list[Row]  # one row for each look at validation data

    def field(self, batch: GraphBatch) -> PairwiseField:
        """The field [R, ...] that labels these graphs jointly."""
        ...

    def labels(self, batch: GraphBatch) -> Tensor:
        """Labels [R, nodes] that fit together."""
        ...

    def beliefs(self, batch: GraphBatch, semiring: Semiring) -> Beliefs:
        """Node and edge beliefs of that field."""
        ...

    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network alone."""
        ...

    def to(self, device: torch.device) -> None:
        """Move everything that was learned."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """Everything that was learned, by name."""
        ...

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Put such tensors back."""
        ...


class Method(ABC):
    """A way to train such a model."""

    def __init__(self, recipe: Recipe, level: str = "node") -> None:
        self.recipe, self.level = recipe, level

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes, all stages together."""
        return self.recipe.training.max_epochs

    @abstractmethod
    def build(self, shape: Shape, replicas: Replicas) -> FieldModel:
        """An untrained model."""

    @abstractmethod
    def fit(
        self,
        train: Sequence[Data],
        validation: Sequence[Data],
        shape: Shape,
        replicas: Replicas,
        folder: Path | None = None,
        report: Report | None = None,
    ) -> FieldModel:
        """Train on `train`, choose on `validation`; nothing else is looked at."""
