"""Sequences in a `NodeClassifier`: words as features, schemes of labels, the best labellings, and spans."""

from accord.estimator.sequences._chains import BestLabellings, best_labellings, span_probability
from accord.estimator.sequences._words import (
    WORDS,
    check_scheme,
    check_sequence_options,
    find_transitions,
    fit_inputs,
    fit_words,
    reads_words,
)

__all__ = [
    "WORDS",
    "BestLabellings",
    "best_labellings",
    "check_scheme",
    "check_sequence_options",
    "find_transitions",
    "fit_inputs",
    "fit_words",
    "reads_words",
    "span_probability",
]
