"""One graph over several processes: partitions, exchange at their borders, and what is computed on them."""

from accord.distributed._halo import Halo
from accord.distributed._part import Part, cut_part
from accord.distributed._partition import partition

__all__ = ["Halo", "Part", "cut_part", "partition"]
