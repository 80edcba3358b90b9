"""Going on from a fitted model: its weights, names and treatment of features are taken over if they fit."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from accord.errors import InputError, InputTypeError, OptionError
from accord.learning import TrainingRun
from accord.methods import FieldModel, Recipe, Shape

if TYPE_CHECKING:
    from accord.estimator._classifier import NodeClassifier

NETWORKS = ("encoder", "edge_encoder", "label_encoder", "scorer")  # fields of recipes


def check_start(start: object, model: "NodeClassifier", recipe: Recipe) -> None:
    """Refuse a model that training cannot go on from, before any data are read.

    Args:
        start: given as `fit(start=...)`.
        model: to be fitted.
        recipe: that it will follow.
    """
    if not isinstance(start, type(model)):
        raise InputTypeError(
            f"NodeClassifier.fit: start is a {type(start).__name__}, not a NodeClassifier. Read a saved model with "
            "NodeClassifier.load(folder)."
        )
    if model.search is not None:
        raise OptionError(
            "NodeClassifier.fit: start brings its networks, so there is nothing to search. Leave out search or start."
        )
    if not hasattr(start, "model_"):
        raise InputError("NodeClassifier.fit: start is not fitted yet. Fit it, or read one with NodeClassifier.load.")
    differing: list[tuple[str, object, object]] = [("method", start.method, model.method)]
    for name in NETWORKS:
        kinds = [type(getattr(own, name, None)).__name__ for own in (start.recipe_, recipe)]
        differing.append((name, kinds[0], kinds[1]))
    for name, known, wanted in (
        ("label_names", start.label_names_, model.label_names),
        ("task_names", start.task_names, model.task_names),
    ):
        if wanted is not None:
            differing.append((name, None if known is None else list(known), list(wanted)))
    if model.num_states is not None:
        differing.append(("num_states", start.shape_.num_states, model.num_states))
    if model.features != "auto":
        differing.append(("features", start.treatment_.name, model.features))
    for name, before, now in differing:
        if before != now:
            raise InputError(
                f"NodeClassifier.fit: start has {name} {_short(before)}, this model {_short(now)}. Give both the same, "
                "or train without start."
            )


def fit_once(model: "NodeClassifier", run: TrainingRun, start: "NodeClassifier | None") -> FieldModel:
    """A field model of a classifier's recipe, trained on a run from its own initial weights or those of `start`."""
    method = model._method()
    if start is not None:
        with torch.device("meta"):  # sizes without memory
            untrained = method.build(model.shape_, model._members())
        run = replace(run, start=starting_weights(start, untrained))
    fitted = method.fit(run, model.shape_, model._members())
    if start is not None:
        keep_seen_states(fitted, start.model_)
    return fitted


def keep_seen_states(model: FieldModel, before: FieldModel) -> None:
    """States that the first model was trained on may still be predicted, also if the new graphs lack them."""
    own, earlier = model.validated.unseen, before.validated.unseen
    both = [[state for state in now if state in then] for now, then in zip(own, earlier, strict=False)]
    model.validated = replace(model.validated, unseen=both)


def check_shape(before_shape: Shape, shape: Shape) -> None:
    """Refuse data of other sizes than those that the first model was trained on."""
    for name, before in vars(before_shape).items():
        now = getattr(shape, name)
        if name == "edge_columns":  # not of the data; made as in the first training
            continue
        if before != now:
            raise InputError(
                f"NodeClassifier.fit: start was trained on graphs with {name.removeprefix('num_').replace('_', ' ')} "
                f"{before}, these have {now}. Give graphs with the same columns, or train without start."
            )


def starting_weights(start: "NodeClassifier", untrained: FieldModel) -> Mapping[str, Tensor]:
    """The weights to go on from; networks of other sizes are refused.

    Args:
        start: the fitted model.
        untrained: a model as it would be trained, on any device.
    """
    found, needed = start.model_.tensors(), untrained.tensors()
    for name in sorted({*found, *needed}):
        sizes = [list(own[name].shape) if name in own else None for own in (found, needed)]
        if sizes[0] != sizes[1]:
            raise InputError(
                f"NodeClassifier.fit: the networks of start have other sizes: {name} is {_short(sizes[0])} there, "
                f"{_short(sizes[1])} here. Use the same encoder and options, or train without start."
            )
    return {name: value.detach().to("cpu", copy=True) for name, value in found.items()}


def _short(value: object) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."
