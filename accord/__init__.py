"""Accord: labels that agree. Joint labelling of the nodes of new graphs."""

from accord.field import PairwiseField
from accord.inference import enumerate_beliefs, propagate

__all__ = ["PairwiseField", "enumerate_beliefs", "propagate"]
