"""`NodeClassifier`: the front door, in the manner of scikit-learn."""

from accord.estimator._checks import ACCELERATORS
from accord.estimator._classifier import NodeClassifier

__all__ = ["ACCELERATORS", "NodeClassifier"]
