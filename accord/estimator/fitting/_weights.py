"""`class_weight` of a `NodeClassifier`: from what a user gives to weights of training labels."""

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from accord.errors import InputTypeError, OptionError
from accord.estimator.labelling._thresholds import state_of
from accord.learning.training import StateWeights
from accord.methods import Shape

BALANCED = "balanced"
ClassWeight = str | Sequence[float] | Mapping[str | int, float] | None


def check_class_weight(given: object, method: str, refined: bool) -> None:
    """Refuse a class_weight of the wrong kind, or for a method whose loss is not a sum over labels."""
    if given is None:
        return
    if isinstance(given, str):
        if given != BALANCED:
            raise OptionError(
                f"NodeClassifier: class_weight {given[:80]!r} is unknown. Give 'balanced', a list of numbers by state, "
                "or a dict of numbers by label."
            )
    elif not isinstance(given, (Sequence, Mapping, np.ndarray, Tensor)):
        raise InputTypeError(
            f"NodeClassifier: class_weight is a {type(given).__name__}. Give 'balanced', a list of numbers by state, "
            "or a dict of numbers by label."
        )
    if method == "crf" or refined:
        who = "method 'crf'" if method == "crf" else "refinement"
        raise OptionError(
            f"NodeClassifier: class_weight has no meaning for {who}: the likelihood of a whole graph cannot be divided "
            "among labels. Use method 'spn' without refinement."
        )


def plain_weights(given: Any, num_states: int, names: Sequence[str] | None) -> str | list[float] | None:
    """The given weights as JSON can hold them: None, "balanced", or a number for each state."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        weights = [1.0] * num_states
        for key, value in given.items():
            weights[state_of(key, num_states, names, "class_weight")] = _positive(value)
        return weights
    values = given.tolist() if isinstance(given, (np.ndarray, Tensor)) else list(given)
    if not isinstance(values, list) or len(values) != num_states:
        count = len(values) if isinstance(values, list) else 1
        raise OptionError(
            f"NodeClassifier: class_weight has {count} numbers for {num_states} states. Give one for each state, or a "
            "dict with some of them."
        )
    return [_positive(value) for value in values]


def state_weights(given: Any, train: Sequence[Data], shape: Shape, names: Sequence[str] | None) -> StateWeights | None:
    """Weights of the training labels; None where all count the same."""
    weights = plain_weights(given, shape.num_states, names)
    if weights is None:
        return None
    if weights == BALANCED:
        return StateWeights.balanced(train, shape.num_states)
    return StateWeights.by_state(torch.tensor(weights, dtype=torch.float64), train)


def _positive(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"NodeClassifier: class_weight holds {str(value)[:80]!r}; numbers are needed.")
    if not 0 < float(value) < math.inf:
        raise OptionError(
            f"NodeClassifier: class_weight holds {float(value):.6g}; weights must be positive and finite."
        )
    return float(value)
