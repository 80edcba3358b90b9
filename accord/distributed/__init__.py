"""One graph over several processes: partitions, exchange at their borders, and what is computed on them."""

from typing import TYPE_CHECKING

from accord._lazy import lazy_names
from accord.distributed._halo import Halo
from accord.distributed._part import Part, cut_part
from accord.distributed._partition import partition

if TYPE_CHECKING:
    from accord.distributed._capacity import Demand, LargeGraph, Machine, demand, fewest_machines
    from accord.distributed._graph import PartGraph, cut_graph, part_batch
    from accord.distributed.propagation import PartResult, cut_field, propagate
    from accord.distributed.solving import PartBeliefs, on_part
    from accord.distributed.tables import read_parts, write_parts

__all__ = [
    "Demand",
    "Halo",
    "LargeGraph",
    "Machine",
    "Part",
    "PartBeliefs",
    "PartGraph",
    "PartResult",
    "cut_field",
    "cut_graph",
    "cut_part",
    "demand",
    "fewest_machines",
    "on_part",
    "part_batch",
    "partition",
    "propagate",
    "read_parts",
    "write_parts",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "_capacity": ("Demand", "LargeGraph", "Machine", "demand", "fewest_machines"),
        "_graph": ("PartGraph", "cut_graph", "part_batch"),
        "propagation": ("PartResult", "cut_field", "propagate"),
        "solving": ("PartBeliefs", "on_part"),
        "tables": ("read_parts", "write_parts"),
    },
)
