"""Settings of belief propagation, checked before any work is done."""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from accord.errors import InputTypeError, OptionError
from accord.graphs._checks import check_number

Semiring = Literal["sum", "max"]
SEMIRINGS = ("sum", "max")
Schedule = Literal["synchronous", "sequential", "residual"]

DEFAULT_SWEEPS = 200  # loopy graphs that converge at all mostly do so in fewer; forests get as many as they need
MAX_SWEEPS = 2**31 - 1  # compiled kernels count sweeps in 32 bits
DEFAULT_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}  # above the relative rounding noise of a log-message


@dataclass(frozen=True, kw_only=True)
class PropagationOptions:
    """Settings of one run of belief propagation.

    Attributes:
        semiring: "sum" for marginals, "max" for the best labelling.
        damping: weight of the old log-message, 0 (plain) up to but not including 1.
        edge_appearance: weight of each edge in tree-reweighted propagation; 1 is plain propagation.
            A number, a tensor [edges] or [*replicas, edges], or "spanning".
        max_sweeps: when to stop; None means 200, or on forests as many as the exact answer needs without damping.
        tolerance: largest change of a log-message, relative to max(1, its largest magnitude), at which a graph stops;
            0 runs all sweeps; None depends on the precision.
        schedule: the order in which messages are sent.
    """

    semiring: Semiring = "sum"
    damping: float = 0.0
    edge_appearance: float | Tensor | Literal["spanning"] = 1.0
    max_sweeps: int | None = None
    tolerance: float | None = None
    schedule: Schedule = "synchronous"

    def __post_init__(self) -> None:
        check_semiring(self.semiring, "propagate")
        damping = check_number(self.damping, "damping", "propagate")
        if not 0 <= damping < 1:
            raise OptionError(
                f"propagate: damping is {damping:g}; it must lie in [0, 1). 0 is plain propagation; try 0.5 where "
                "messages oscillate; at 1 no message would ever change."
            )
        if not isinstance(self.schedule, str) or self.schedule not in get_args(Schedule):
            raise OptionError(
                f"propagate: schedule {self.schedule!r} is unknown. Choose 'synchronous' (all messages at once), "
                "'sequential' (from the rim to the centre and back) or 'residual' (largest pending change first)."
            )
        if self.max_sweeps is not None:
            if isinstance(self.max_sweeps, bool) or not isinstance(self.max_sweeps, int):
                raise InputTypeError(
                    f"propagate: max_sweeps is a {type(self.max_sweeps).__name__}, not an int. "
                    "Give a whole number, or None for the default."
                )
            if not 0 <= self.max_sweeps <= MAX_SWEEPS:
                # As a float, because Python refuses to print an int of thousands of digits.
                sweeps = f"{check_number(self.max_sweeps, 'max_sweeps', 'propagate'):.10g}"
                raise OptionError(
                    f"propagate: max_sweeps is {sweeps}; it must lie in 0 to {MAX_SWEEPS}. None is the default."
                )
        if self.tolerance is not None:
            tolerance = check_number(self.tolerance, "tolerance", "propagate")
            if not 0 <= tolerance < float("inf"):
                raise OptionError(
                    f"propagate: tolerance is {tolerance}; it must be 0 or a positive number. 0 runs all sweeps, None "
                    "takes the default for the precision of the field."
                )


def check_semiring(semiring: object, where: str) -> None:
    """Refuse anything but the two semirings."""
    if not isinstance(semiring, str) or semiring not in SEMIRINGS:
        raise OptionError(
            f"{where}: semiring {semiring!r} is unknown. Choose 'sum' (marginals) or 'max' (best labels)."
        )
