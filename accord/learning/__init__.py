"""Learning: the proxy problem, the training loop, and the choice of a combination on validation data.

Here is what a user of the package needs. Objectives, the training loop and selection are in the subpackages
`accord.learning.objectives`, `accord.learning.training` and `accord.learning.selection`.
"""

from accord.learning.objectives import GameOptions
from accord.learning.selection import CombinationGrid
from accord.learning.training import (
    HistoryRow,
    PartOptions,
    RefinementOptions,
    Replicas,
    Report,
    TrainingOptions,
    TrainingRun,
    hold_out,
)

__all__ = [
    "CombinationGrid",
    "GameOptions",
    "HistoryRow",
    "PartOptions",
    "RefinementOptions",
    "Replicas",
    "Report",
    "TrainingOptions",
    "TrainingRun",
    "hold_out",
]
