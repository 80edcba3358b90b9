"""`NodeClassifier`: the front door, in the manner of scikit-learn."""

from accord.estimator._checks import ACCELERATORS
from accord.estimator._classifier import NodeClassifier
from accord.estimator.fitting._search import find_settings
from accord.estimator.labelling._explanation import Explanation
from accord.estimator.labelling._parts import PartLabels, check_parts, columns_of_model, predict_part

__all__ = [
    "ACCELERATORS",
    "Explanation",
    "NodeClassifier",
    "PartLabels",
    "check_parts",
    "columns_of_model",
    "find_settings",
    "predict_part",
]
