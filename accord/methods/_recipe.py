"""A recipe: every choice that a method needs to train, in one value."""

from dataclasses import dataclass, field

from accord.encoders import BilinearScorer, EncoderSpec, ScorerSpec
from accord.errors import InputTypeError, OptionError
from accord.learning import CombinationGrid, PartOptions, TrainingOptions

SELECTIONS = ("grid", "likelihood")


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
        }
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise InputTypeError(
                    f"Recipe: {name} is a {type(getattr(self, name)).__name__}, not a {kind.__name__}. "
                    "Foreign modules become encoders by accord.encoders.Adapter(module)."
                )
        numbers = {"edge_channels": (1, 1e6), "consistency": (0, float("inf")), "damping": (0, 1)}
        for name, (low, high) in numbers.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value < high:
                raise OptionError(f"Recipe: {name} is {value!r}; a number from {low} to below {high} is needed.")
        if self.selection not in SELECTIONS:
            raise OptionError(f"Recipe: selection {self.selection!r} is unknown. Choose one of {SELECTIONS}.")
