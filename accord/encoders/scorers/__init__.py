"""Edge scorers: node representations in, one table of scores over pairs of states for each undirected edge out."""

from accord.encoders.scorers._agreement import AgreementScorer
from accord.encoders.scorers._bilinear import BilinearScorer
from accord.encoders.scorers._full_bilinear import FullBilinearScorer
from accord.encoders.scorers._linear import LinearScorer
from accord.encoders.scorers._scorer import Scorer, ScorerSpec
from accord.encoders.scorers._transition import TransitionScorer

__all__ = [
    "AgreementScorer",
    "BilinearScorer",
    "FullBilinearScorer",
    "LinearScorer",
    "Scorer",
    "ScorerSpec",
    "TransitionScorer",
]
