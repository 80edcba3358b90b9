"""Pairwise fields: log-potentials on nodes and edges, and how pseudomarginals combine into them."""

from accord.field._chains import ChainField
from accord.field._field import PairwiseField
from accord.field._pseudomarginals import (
    Combination,
    Normaliser,
    Pseudomarginals,
    blend,
    node_marginals,
    own_sums,
    symmetrise,
)

__all__ = [
    "ChainField",
    "Combination",
    "Normaliser",
    "PairwiseField",
    "Pseudomarginals",
    "blend",
    "node_marginals",
    "own_sums",
    "symmetrise",
]
