"""Belief propagation on one graph that several processes hold in parts."""

from accord.distributed.propagation._propagate import PartResult, cut_field, propagate

__all__ = ["PartResult", "cut_field", "propagate"]
