"""Pairwise fields: log-potentials on nodes and edges, and how pseudomarginals combine into them."""

from accord.field._checks import LARGEST_POTENTIAL
from accord.field._field import PairwiseField
from accord.field._pseudomarginals import (
    NORMALISERS,
    Combination,
    Normaliser,
    Pseudomarginals,
    blend,
    node_marginals,
    own_sums,
    symmetrise,
)

__all__ = [
    "LARGEST_POTENTIAL",
    "NORMALISERS",
    "Combination",
    "Normaliser",
    "PairwiseField",
    "Pseudomarginals",
    "blend",
    "node_marginals",
    "own_sums",
    "symmetrise",
]
