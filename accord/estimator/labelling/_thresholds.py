"""Thresholds of rare states: a state is given wherever its probability reaches a number that the user chooses.

The most likely labelling seldom contains a state that is rare everywhere, such as "fraud". A threshold decides for or
against that state at each node by itself, by the node's marginal. The other states are then labelled jointly, given
these decisions. With two states nothing is left to decide jointly: the labels are the thresholded marginals.
"""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

import torch
from torch import Tensor

from accord.errors import InputTypeError, OptionError
from accord.inference.triangles import AnyField
from accord.methods import FieldModel

Thresholds = Mapping[str | int, float] | float


def check_thresholds(given: Thresholds, num_states: int, names: Sequence[str] | None) -> dict[int, float]:
    """Thresholds by state.

    Args:
        given: by the name or the number of a state; with two states, a number is the threshold of state 1.
        num_states: of the model.
        names: of the states, if they have names.
    """
    if isinstance(given, Real) and not isinstance(given, bool):
        if num_states != 2:
            raise OptionError(
                f"NodeClassifier.predict: threshold is {given}, but the model has {num_states} states. Say which state "
                "it is for, e.g. threshold={'fraud': 0.3}."
            )
        given = {1: float(given)}
    if not isinstance(given, Mapping):
        raise InputTypeError(
            f"NodeClassifier.predict: threshold is a {type(given).__name__}. Give numbers by state, e.g. "
            "threshold={'fraud': 0.3}."
        )
    return {state_of(key, num_states, names, "threshold"): _probability(value) for key, value in given.items()}


def state_of(key: object, num_states: int, names: Sequence[str] | None, option: str) -> int:
    """The state that a name or a number stands for."""
    if isinstance(key, str) and names is not None and key in names:
        return list(names).index(key)
    if isinstance(key, Integral) and not isinstance(key, bool) and 0 <= int(key) < num_states:
        return int(key)
    known = f"0 to {num_states - 1}" if names is None else ", ".join(map(repr, list(names)[:8]))
    raise OptionError(f"NodeClassifier: {option} names the state {str(key)[:80]!r}, which is unknown. States: {known}.")


def labels_by_threshold(
    model: FieldModel, field: AnyField, probabilities: Tensor, thresholds: Mapping[int, float]
) -> Tensor:
    """Labels [R, nodes]: states with a threshold node by node, all others jointly.

    Args:
        model: the trained model.
        field: of the graphs.
        probabilities: [R, nodes, states], marginals.
        thresholds: by state.
    """
    allowed = allowed_states(probabilities, thresholds)
    node = field.node.expand(*field.replicas, *field.node.shape[-2:])
    return model.labels_of(field.with_potentials(node=node.masked_fill(~allowed.to(node.device), -torch.inf)))


def allowed_states(probabilities: Tensor, thresholds: Mapping[int, float]) -> Tensor:
    """Which states thresholds leave to each node [R, nodes, states].

    Where several states reach their thresholds, the one that exceeds its own by the largest factor is given. Where none
    does and there is no other state to give, the one that comes nearest is.
    """
    states = torch.tensor(list(thresholds), device=probabilities.device)
    limits = torch.tensor([thresholds[int(state)] for state in states], device=probabilities.device)
    found = probabilities.index_select(-1, states)
    limited = torch.zeros(probabilities.shape[-1], dtype=torch.bool, device=probabilities.device)
    limited[states] = True
    best = states[(found / limits).argmax(-1)]
    others = probabilities.masked_fill(limited, 0.0).sum(-1) > 0
    given = (found >= limits).any(-1) | ~others
    chosen = torch.nn.functional.one_hot(best, probabilities.shape[-1]).bool()
    return torch.where(given[..., None], chosen, ~limited)


def _probability(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"NodeClassifier.predict: a threshold is {str(value)[:80]!r}; a number is needed.")
    if not 0 < float(value) <= 1:
        raise OptionError(
            f"NodeClassifier.predict: a threshold is {float(value):.6g}; a probability above 0 and at most 1 is needed."
        )
    return float(value)
