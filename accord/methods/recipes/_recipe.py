"""Recipes: every choice that a method needs to train, in one value per method."""

from dataclasses import dataclass, field, fields
from typing import ClassVar

from accord.encoders import BilinearScorer, EncoderSpec, ScorerSpec, SequenceSpec
from accord.encoders.scorers.triangles import AgreementTriangles, LowRankTriangles, TriangleScorerSpec
from accord.errors import InputTypeError, OptionError
from accord.field import Transitions
from accord.learning import CombinationGrid, GameOptions, PartOptions, RefinementOptions, TrainingOptions
from accord.learning.selection import TriangleGrid

INFINITY = float("inf")
DROPOUT = 0.2  # of triangle scorers


@dataclass(frozen=True, kw_only=True)
class TriangleRecipe:
    """The triangle network of an SPN of order 3, and the candidates of its weights."""

    encoder: EncoderSpec | None = None  # None takes the edge encoder
    channels: int = 64  # outputs of the encoder, inputs of the scorer
    # None: which labels are equal, or for two states, whose equality says nothing beyond pairs, tables of low rank.
    scorer: TriangleScorerSpec | None = None
    part: PartOptions | None = None  # None takes the edge network's
    grid: TriangleGrid = field(default_factory=TriangleGrid)

    def __post_init__(self) -> None:
        kinds = {"encoder": EncoderSpec | None, "scorer": TriangleScorerSpec | None, "part": PartOptions | None}
        for name, kind in (kinds | {"grid": TriangleGrid, "channels": int}).items():
            if not isinstance(getattr(self, name), kind):
                raise InputTypeError(
                    f"TriangleRecipe: {name} is a {type(getattr(self, name)).__name__}, not a "
                    f"{getattr(kind, '__name__', kind)}."
                )
        if self.channels < 1:
            raise OptionError(f"TriangleRecipe: channels is {self.channels}; a positive whole number is needed.")

    def scorer_for(self, num_states: int) -> TriangleScorerSpec:
        """The scorer, for labels with so many states."""
        if self.scorer is not None:
            return self.scorer
        return LowRankTriangles(dropout=DROPOUT) if num_states == 2 else AgreementTriangles(dropout=DROPOUT)


# What each field may hold, in every recipe that has it.
KINDS: dict[str, object] = {
    "encoder": EncoderSpec,
    "edge_encoder": EncoderSpec,
    "label_encoder": EncoderSpec,
    "scorer": ScorerSpec,
    "node": PartOptions,
    "edge": PartOptions,
    "label": PartOptions,
    "training": TrainingOptions,
    "grid": CombinationGrid,
    "shared": bool,
    "edge_inputs": bool,
    "game": GameOptions,
    "refinement": RefinementOptions | None,
    "triangles": TriangleRecipe | None,
    "transitions": Transitions | None,
}
RANGES = {
    "edge_channels": (1, 1e6),
    "label_channels": (1, 1e6),
    "consistency": (0, INFINITY),
    "shrinkage": (0, INFINITY),
    "damping": (0, 1),
}
CHOICES = {
    "selection": ("grid", "likelihood"),
    "edge_level": ("edge", "graph"),
    "rule": ("careful", "score"),
    "objective": ("maximin", "pseudolikelihood"),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What every method needs: a node network and how to train. Each method has a subclass with its own fields."""

    method: ClassVar[str]  # the method that this recipe is for

    encoder: EncoderSpec
    node: PartOptions = field(default_factory=PartOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    edge_inputs: bool = False  # networks read the attributes of a node's edges beside its features, if edges have any

    def __post_init__(self) -> None:
        for entry in fields(self):
            for check in (self._check_kind, self._check_range, self._check_choice):
                check(entry.name, getattr(self, entry.name))

    @property
    def reads_sequences(self) -> bool:
        """Whether a network reads sequences, so that all graphs must be paths; nodes or edges, either will do."""
        used = ["encoder", "label_encoder"] + ([] if getattr(self, "shared", False) else ["edge_encoder"])
        return any(isinstance(getattr(self, name, None), SequenceSpec) for name in used)

    def _check_kind(self, name: str, value: object) -> None:
        kind = KINDS.get(name, object)
        if not isinstance(value, kind):  # type: ignore[arg-type]
            raise InputTypeError(
                f"{type(self).__name__}: {name} is a {type(value).__name__}, not a "
                f"{getattr(kind, '__name__', kind)}. Wrap a PyG module in accord.encoders.Adapter(module)."
            )

    def _check_range(self, name: str, value: object) -> None:
        if name == "rounds" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise OptionError(f"{type(self).__name__}: rounds is {value!r}; a whole number from 0 up is needed.")
        if name in RANGES:
            low, high = RANGES[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < high:
                raise OptionError(
                    f"{type(self).__name__}: {name} is {value!r}; a number from {low} to below {high} is needed."
                )

    def _check_choice(self, name: str, value: object) -> None:
        if name in CHOICES and value not in CHOICES[name]:
            raise OptionError(
                f"{type(self).__name__}: {name} {value!r} is unknown. Choose one of {', '.join(CHOICES[name])}."
            )


@dataclass(frozen=True, kw_only=True)
class GNNRecipe(Recipe):
    """A node network alone ("gnn"), or with smoothed predictions ("smooth")."""

    method: ClassVar[str] = "gnn"


@dataclass(frozen=True, kw_only=True)
class PairRecipe(Recipe):
    """A node network and an edge network whose scores form a field."""

    edge_encoder: EncoderSpec
    shared: bool = False  # one encoder (the first) for nodes and edges; `edge_encoder` and `edge` are then not used
    edge_channels: int = 64  # outputs of the edge encoder (or of the shared one), inputs of the scorer
    scorer: ScorerSpec = field(default_factory=BilinearScorer)
    edge: PartOptions = field(default_factory=PartOptions)
    damping: float = 0.5  # of belief propagation, in selection and prediction
    transitions: Transitions | None = None  # that labels of sequences never have; None for none


@dataclass(frozen=True, kw_only=True)
class SPNRecipe(PairRecipe):
    """A Structured Proxy Network."""

    method: ClassVar[str] = "spn"

    consistency: float = 0.0  # weight of the penalty on disagreement between the two networks
    grid: CombinationGrid = field(default_factory=CombinationGrid)
    selection: str = "grid"  # or "likelihood": the numbers of the combination fitted on validation data
    # Among the grid's candidates: "careful" tries few and keeps the node network alone unless the gain is beyond noise;
    # "score" tries all and takes the best score, the first of equals.
    rule: str = "careful"
    shrinkage: float = 1.0  # pseudo-count against the labelled nodes and edges; bounds the potentials, 0 does not
    refinement: RefinementOptions | None = None  # by the maximin game; None for none
    game: GameOptions = field(default_factory=GameOptions)  # how beliefs are found in the refinement
    triangles: TriangleRecipe | None = None  # a third network, of triangles (order 3); None for pairs alone
    edge_level: str = "edge"  # or "graph": the edge network is kept by the share of graphs with every pair right


@dataclass(frozen=True, kw_only=True)
class CRFRecipe(PairRecipe):
    """A conditional random field trained as a whole."""

    method: ClassVar[str] = "crf"

    objective: str = "maximin"  # or "pseudolikelihood"
    game: GameOptions = field(default_factory=GameOptions)  # how beliefs are found in the maximin game


@dataclass(frozen=True, kw_only=True)
class GMNNRecipe(Recipe):
    """An inference network (`encoder`, `node`) and a label network that train each other."""

    method: ClassVar[str] = "gmnn"

    label_encoder: EncoderSpec
    label_channels: int = 64  # outputs of the label encoder
    label: PartOptions = field(default_factory=PartOptions)
    rounds: int = 2  # how often the two networks learn from each other
