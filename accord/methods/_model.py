"""What all trained methods are: graphs in, a field for every replica out."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from accord.errors import InputTypeError
from accord.field import PairwiseField
from accord.graphs import GraphBatch
from accord.inference import Beliefs, Semiring
from accord.learning import HistoryRow, Replicas, TrainingRun
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

    history: list[HistoryRow]  # one row for each evaluation

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
    """A way to train such a model.

    Args:
        recipe: of the class `recipe_type`, with every choice that the method needs.
        level: what to select by on validation data, "node" or "graph".
    """

    name: ClassVar[str]  # as users write it
    recipe_type: ClassVar[type[Recipe]]

    def __init__(self, recipe: Recipe, level: str = "node") -> None:
        if not isinstance(recipe, self.recipe_type):
            raise InputTypeError(
                f"method {self.name!r}: the recipe is a {type(recipe).__name__}, but a {self.recipe_type.__name__} is "
                f"needed. Make one with accord.methods.preset_recipe(..., method={self.name!r})."
            )
        self.recipe, self.level = recipe, level

    @property
    def epochs(self) -> int:
        """How many epochs a whole fit takes, all stages together."""
        return self.recipe.training.max_epochs

    @abstractmethod
    def build(self, shape: Shape, replicas: Replicas) -> FieldModel:
        """An untrained model."""

    @abstractmethod
    def fit(self, run: TrainingRun, shape: Shape, replicas: Replicas) -> FieldModel:
        """Train on the run's training graphs and select on its validation graphs."""
