"""A recipe: every choice that a method needs to train, in one value."""

from dataclasses import dataclass, field

from accord.encoders import BilinearScorer, EncoderSpec, ScorerSpec
from accord.errors import InputTypeError, OptionError
from accord.learning import CombinationGrid, GameOptions, PartOptions, RefinementOptions, TrainingOptions

SELECTIONS = ("grid", "likelihood")
OBJECTIVES = ("maximin", "pseudolikelihood")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Architectures, learning rates and candidates; presets are tables of these."""

    encoder: EncoderSpec
    edge_encoder: EncoderSpec
    shared: bool = False  # one encoder (the first) for nodes and edges
    edge_channels: int = 64  # outputs of the edge encoder (or of the shared one), inputs of the scorer
    scorer: ScorerSpec = field(default_factory=BilinearScorer)
    node: PartOptions = field(default_factory=PartOptions)
    edge: PartOptions = field(default_factory=PartOptions)
    consistency: float = 0.0  # weight of the penalty that ties the two networks together
    training: TrainingOptions = field(default_factory=TrainingOptions)
    grid: CombinationGrid = field(default_factory=CombinationGrid)
    selection: str = "grid"  # or "likelihood": the numbers of the combination fitted on validation data
    damping: float = 0.5  # of belief propagation, in selection and prediction
    refinement: RefinementOptions | None = None  # of an SPN, by the maximin game; None for none
    objective: str = "maximin"  # of a CRF, or "pseudolikelihood"
    game: GameOptions = field(default_factory=GameOptions)  # how beliefs are found in the maximin game
    rounds: int = 2  # of a GMNN: how often its two networks learn from each other

    def __post_init__(self) -> None:
        kinds = {
            "encoder": EncoderSpec,
            "edge_encoder": EncoderSpec,
            "scorer": ScorerSpec,
            "node": PartOptions,
            "edge": PartOptions,
            "training": TrainingOptions,
            "grid": CombinationGrid,
            "shared": bool,
            "game": GameOptions,
            "refinement": RefinementOptions | None,
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise InputTypeError(
                    f"Recipe: {name} is a {type(getattr(self, name)).__name__}, not a {_called(kind)}. "
                    "Foreign modules become encoders by accord.encoders.Adapter(module)."
                )
        numbers = {"edge_channels": (1, 1e6), "consistency": (0, float("inf")), "damping": (0, 1)}
        for name, (low, high) in numbers.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value < high:
                raise OptionError(f"Recipe: {name} is {value!r}; a number from {low} to below {high} is needed.")
        if isinstance(self.rounds, bool) or not isinstance(self.rounds, int) or self.rounds < 0:
            raise OptionError(f"Recipe: rounds is {self.rounds!r}; a whole number from 0 up is needed.")
        for name, choices in (("selection", SELECTIONS), ("objective", OBJECTIVES)):
            if getattr(self, name) not in choices:
                raise OptionError(f"Recipe: {name} {getattr(self, name)!r} is unknown. Choose one of {choices}.")


def _called(kind: object) -> str:
    return getattr(kind, "__name__", str(kind))
