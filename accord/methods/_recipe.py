"""A recipe: every choice that a method needs to train, in one value."""

from dataclasses import dataclass, field

from accord.encoders import BilinearScorer, EncoderSpec, ScorerSpec
from accord.learning import CombinationGrid, PartOptions, TrainingOptions


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
