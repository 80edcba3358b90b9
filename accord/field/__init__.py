"""Pairwise fields: log-potentials on nodes and edges, and how pseudomarginals combine into them."""

from accord.field._chains import ChainField
from accord.field._field import PairwiseField
from accord.field._paths import PathChains, chains_of
from accord.field._pseudomarginals import (
    Combination,
    Normaliser,
    Pseudomarginals,
    blend,
    node_marginals,
    own_sums,
    symmetrise,
)
from accord.field._transitions import Transitions, bio_transitions

__all__ = [
    "ChainField",
    "Combination",
    "Normaliser",
    "PairwiseField",
    "PathChains",
    "Pseudomarginals",
    "Transitions",
    "bio_transitions",
    "blend",
    "chains_of",
    "node_marginals",
    "own_sums",
    "symmetrise",
]
