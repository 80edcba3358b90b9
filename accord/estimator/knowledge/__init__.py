"""What users know about graphs: known labels, constraints on pairs of labels, and preferences."""

from accord.estimator.knowledge._knowledge import Given, Knowledge
from accord.estimator.knowledge._known import States, known_labels
from accord.estimator.knowledge._places import Places

__all__ = ["Given", "Knowledge", "Places", "States", "known_labels"]
