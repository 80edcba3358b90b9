"""From beliefs on parts of a graph to one labelling."""

from accord.distributed.decoding._decoding import decode_part
from accord.distributed.decoding._structure import PartStructure, on_whole_peeling

__all__ = ["PartStructure", "decode_part", "on_whole_peeling"]
