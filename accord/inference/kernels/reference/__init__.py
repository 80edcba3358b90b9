"""Plain torch on any device: the version that reads like the equations, and that every other kernel is checked against.

`_synchronous` holds the steps of a sweep. The other schedules, gradients and the layouts of other kernels use them too.
"""

from accord.inference.kernels.reference._solve import SCHEDULES, needed_bytes, solve
from accord.inference.kernels.reference._synchronous import (
    arc_potentials,
    cavities,
    change,
    collect,
    collect_with_levels,
    damp,
    first_messages,
    normalise,
    send,
)

__all__ = [
    "SCHEDULES",
    "arc_potentials",
    "cavities",
    "change",
    "collect",
    "collect_with_levels",
    "damp",
    "first_messages",
    "needed_bytes",
    "normalise",
    "send",
    "solve",
]
