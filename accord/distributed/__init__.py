"""One graph over several processes: partitions, exchange at their borders, and what is computed on them."""

from accord.distributed._graph import PartGraph, cut_graph, part_batch
from accord.distributed._halo import Halo
from accord.distributed._part import Part, cut_part
from accord.distributed._partition import partition
from accord.distributed.tables import read_parts, write_parts

__all__ = [
    "Halo",
    "Part",
    "PartGraph",
    "cut_graph",
    "cut_part",
    "part_batch",
    "partition",
    "read_parts",
    "write_parts",
]
