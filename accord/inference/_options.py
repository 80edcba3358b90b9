"""How belief propagation is run; every value is checked before any work is done."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from accord.errors import InputTypeError, OptionError

Semiring = Literal["sum", "max"]
SEMIRINGS = ("sum", "max")

DEFAULT_SWEEPS = 200  # loopy graphs that settle at all have settled by then; forests get as many as they need
DEFAULT_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}  # above the rounding noise of a log-message


@dataclass(frozen=True, kw_only=True)
class PropagationOptions:
    """Settings of one run of belief propagation.

    Attributes:
        semiring: "sum" for marginals, "max" for the best labelling.
        damping: weight of the old log-message, 0 (plain) up to but not including 1.
        edge_appearance: weight of each edge in tree-reweighted propagation; 1 is plain propagation.
            A number, a tensor [edges], or "spanning".
        max_sweeps: when to stop; None means 200, or on forests as many as an exact answer takes.
        tolerance: stop a graph when no log-message moves by more; 0 runs all sweeps; None follows the precision.
    """

    semiring: Semiring = "sum"
    damping: float = 0.0
    edge_appearance: float | Tensor | Literal["spanning"] = 1.0
    max_sweeps: int | None = None
    tolerance: float | None = None

    def __post_init__(self) -> None:
        check_semiring(self.semiring, "propagate")
        _check_number(self.damping, "damping")
        if not 0 <= self.damping < 1:
            raise OptionError(
                f"propagate: damping is {self.damping}; it must lie in [0, 1). 0 is plain propagation, 0.5 is a good "
                "start where messages oscillate, and at 1 no message would ever move."
            )
        if self.max_sweeps is not None:
            if isinstance(self.max_sweeps, bool) or not isinstance(self.max_sweeps, int):
                raise InputTypeError(f"propagate: max_sweeps is a {type(self.max_sweeps).__name__}, not an int.")
            if self.max_sweeps < 0:
                raise OptionError(f"propagate: max_sweeps is {self.max_sweeps}; it cannot be negative.")
        if self.tolerance is not None:
            _check_number(self.tolerance, "tolerance")
            if not 0 <= self.tolerance < float("inf"):
                raise OptionError(
                    f"propagate: tolerance is {self.tolerance}; it must be 0 (run all sweeps) or a positive number."
                )


def check_semiring(semiring: object, where: str) -> None:
    """Refuse anything but the two semirings."""
    if not isinstance(semiring, str) or semiring not in SEMIRINGS:
        raise OptionError(
            f"{where}: semiring {semiring!r} is unknown. Choose 'sum' (marginals) or 'max' (best labels)."
        )


def _check_number(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputTypeError(f"propagate: {name} is a {type(value).__name__}, not a number.")
