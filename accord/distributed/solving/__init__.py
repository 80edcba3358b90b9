"""Fields of which each process has a part: solving and decoding them together."""

from accord.distributed.solving._field import PartBeliefs, on_part

__all__ = ["PartBeliefs", "on_part"]
