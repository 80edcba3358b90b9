"""What all methods share: a way to train, and a trained model that turns graphs into a field for every replica."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from accord.errors import InputError, InputTypeError, OptionError
from accord.graphs import GraphBatch
from accord.inference import Semiring
from accord.inference.triangles import AnyBeliefs, AnyField
from accord.learning import HistoryRow, Replicas, TrainingRun
from accord.learning.selection import ADDED_LATER
from accord.learning.training import Objective, learned
from accord.methods._ensemble import Ensemble
from accord.methods._validated import KEYS, Validated
from accord.methods.recipes._recipe import Recipe

Choice = dict[str, list[Any]]  # one plain value for each replica, by name
FieldChange = Callable[[AnyField], AnyField]  # e.g. known labels, forbidden pairs


@dataclass(frozen=True)
class Shape:
    """Sizes that the data fix."""

    num_features: int
    num_states: int
    num_tasks: int = 1
    edge_attributes: int = 0
    edge_columns: int = 0  # of the networks' input, after the features (`accord.graphs.EdgeColumns`)

    @property
    def num_inputs(self) -> int:
        """Columns that networks read at a node."""
        return self.num_features + self.edge_columns


@dataclass(frozen=True, eq=False)
class Answer:
    """What one part of a model says about the nodes of a batch."""

    labels: Tensor  # [R, nodes]
    probabilities: Tensor  # [R, nodes, states], of each node by itself
    residual: float | None = None  # last change of a log-message, if belief propagation did not converge

    @classmethod
    def from_beliefs(cls, labels: Tensor, beliefs: AnyBeliefs, probabilities: Tensor) -> "Answer":
        """Joint labels [R, nodes], and calibrated probabilities [R, nodes, states] of sum-product beliefs."""
        converged = bool(beliefs.converged.all())
        return cls(labels, probabilities, None if converged else float(beliefs.residual.max()))

    @classmethod
    def most_likely(cls, probabilities: Tensor) -> "Answer":
        """Each node's most likely state, by probabilities [R, nodes, states]."""
        return cls(probabilities.argmax(-1), probabilities)


class FieldModel(ABC):
    """A trained method: networks by name, and what was chosen on validation data besides their weights.

    Labels and beliefs of a field come from one run of the networks:

        field = model.field(batch)
        labels, beliefs = model.labels_of(field), model.beliefs_of(field, "sum")

    Args:
        parts: the networks.
    """

    method: ClassVar[str]  # the name of the method that trains such models
    ensemble = (
        Ensemble()
    )  # how the networks form ensembles; R below counts ensembles, of which networks hold all members

    def __init__(self, parts: Mapping[str, nn.Module]) -> None:
        self.parts = dict(parts)
        self.kept: dict[str, Tensor] = {}  # for each part, the epoch whose parameters were kept [replicas]
        self.history: list[HistoryRow] = []  # one row for each evaluation during training
        self.validated = Validated()

    @abstractmethod
    def node_logits(self, batch: GraphBatch) -> Tensor:
        """Scores [R, nodes, states] of the node network alone."""

    @abstractmethod
    def field(self, batch: GraphBatch) -> AnyField:
        """The field [R, ...] that labels these graphs jointly, from one run of the networks."""

    @abstractmethod
    def labels_of(self, field: AnyField) -> Tensor:
        """Joint labels [R, nodes] of such a field."""

    @abstractmethod
    def beliefs_of(self, field: AnyField, semiring: Semiring = "sum") -> AnyBeliefs:
        """Node and edge beliefs of such a field."""

    @abstractmethod
    def field_and_scores(self, batch: GraphBatch) -> tuple[AnyField, Tensor]:
        """The field, and the node network's scores [R, nodes, states], from one run of the networks."""

    @abstractmethod
    def answers(self, batch: GraphBatch, change: FieldChange | None = None) -> dict[str, Answer]:
        """What each part of the model says about a batch, from one run of the networks.

        Args:
            batch: the graphs.
            change: changes the field that the whole model solves, such as by known labels.

        Returns:
            "gnn": the node network alone; "edge", where there is an edge network: the edge network alone; and the
            whole model under its method's name: joint labels and sum-product marginals.
        """

    def labels(self, batch: GraphBatch) -> Tensor:
        """Joint labels [R, nodes]."""
        return self.labels_of(self.field(batch))

    def beliefs(self, batch: GraphBatch, semiring: Semiring = "sum") -> AnyBeliefs:
        """Node and edge beliefs of the field."""
        return self.beliefs_of(self.field(batch), semiring)

    @abstractmethod
    def joint_and_alone(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """Joint labels [R, nodes], and those of the node network alone, from one run of the networks."""

    def answer_of(self, field: AnyField) -> Answer:
        """What the whole model says about the nodes of such a field."""
        beliefs = self.beliefs_of(field, "sum")
        return Answer.from_beliefs(self.labels_of(field), beliefs, self.calibrated(beliefs))

    def calibrated(self, beliefs: AnyBeliefs) -> Tensor:
        """Probabilities [R, nodes, states] of sum-product beliefs, as certain as validation data support."""
        return self.validated.calibrated(beliefs)

    def possible(self, scores: Tensor) -> Tensor:
        """Scores [R, nodes, states] with -inf for states that no training label has: they are never predicted."""
        barred = self.validated.barred(scores.shape[-1], scores)
        return scores if barred is None else scores.masked_fill(barred[:, None], -torch.inf)

    def possible_pairs(self, scores: Tensor) -> Tensor:
        """The same for pairs of states [R, edges, states, states]."""
        barred = self.validated.barred(scores.shape[-1], scores)
        if barred is None:
            return scores
        return scores.masked_fill(barred[:, None, :, None] | barred[:, None, None, :], -torch.inf)

    def choice(self) -> Choice:
        """What was chosen or measured on training and validation data besides the weights: plain values for JSON.

        Subclasses add what they choose.
        """
        return self.validated.to_config()

    def choose(self, choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over a choice that `choice` returned; values that were added in later versions may be missing."""
        self.validated = Validated.from_config(choice)

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return next(next(iter(self.parts.values())).parameters()).device

    def to(self, device: torch.device) -> None:
        """Move the networks."""
        for part in self.parts.values():
            part.to(device)

    def tensors(self) -> dict[str, Tensor]:
        """Weights of the networks, by name."""
        return {f"{part}/{name}": value for part in self.parts for name, value in learned(self.parts[part]).items()}

    @torch.no_grad()
    def begin(self, run: TrainingRun) -> bool:
        """Take over the weights that a run goes on from; return whether there are any."""
        if run.start is None:
            return False
        for part, network in self.parts.items():
            for name, value in learned(network).items():
                value.copy_(run.start[f"{part}/{name}"])
        return True

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor], choice: Mapping[str, Sequence[Any]]) -> None:
        """Take over weights that `tensors` returned and a choice that `choice` returned."""
        optional = (*KEYS, *ADDED_LATER)
        sizes = [
            {name: len(values) for name, values in one.items() if name not in optional}
            for one in (self.choice(), choice)
        ]
        if sizes[0] != sizes[1]:
            raise InputError(f"The saved choice has values {sizes[1]}, this model needs {sizes[0]}. Train it again.")
        for part, network in self.parts.items():
            for name, value in learned(network).items():
                value.copy_(tensors[f"{part}/{name}"])
        self.choose(choice)


class Method(ABC):
    """A way to train such a model.

    Args:
        recipe: of the class `recipe_type`, with every choice that the method needs.
        level: what to select by on validation data, one of `accord.evaluation.LEVELS`.
        ensemble: so many consecutive seeds form one model, whose evidence is the average of theirs.
    """

    name: ClassVar[str]  # as users write it
    recipe_type: ClassVar[type[Recipe]]
    simple: ClassVar[bool] = False  # trained in one stage, so that it can be an ensemble and be trained again (refit)

    def __init__(self, recipe: Recipe, level: str = "node", ensemble: int = 1) -> None:
        if not isinstance(recipe, self.recipe_type):
            raise InputTypeError(
                f"method {self.name!r}: the recipe is a {type(recipe).__name__}, but a {self.recipe_type.__name__} is "
                f"needed. Make one with accord.methods.preset_recipe(..., method={self.name!r})."
            )
        self.recipe, self.level, self.ensemble = recipe, level, ensemble
        if ensemble > 1:
            self.check_simple(f"ensemble={ensemble}", "ensemble=1")

    def check_simple(self, asked: str, remedy: str) -> None:
        """Refuse what needs a method of one stage: training of networks, followed by a choice."""
        if not self.simple:
            raise OptionError(f"method {self.name!r} does not support {asked}. Set {remedy}, or use method 'spn'.")
        if getattr(self.recipe, "refinement", None) is not None:
            raise OptionError(
                f"method {self.name!r}: refinement does not support {asked}. Set {remedy}, or refine=False."
            )

    def objective(self, model: FieldModel) -> Objective:
        """What the networks of a model are trained for; only simple methods have one objective."""
        raise NotImplementedError(f"method {self.name!r} trains in several stages, each with an objective of its own.")

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
