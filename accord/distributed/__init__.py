"""One graph over several processes: partitions, exchange at their borders, and what is computed on them."""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names
from accord.distributed._halo import Halo
from accord.distributed._part import Part, cut_part
from accord.distributed._partition import partition

if TYPE_CHECKING:
    from accord.distributed.propagation import PartResult, cut_field, propagate

__all__ = ["Halo", "Part", "PartResult", "cut_field", "cut_part", "partition", "propagate"]

__getattr__, __dir__ = lazy_names(__name__, {"propagation": ("PartResult", "cut_field", "propagate")})
