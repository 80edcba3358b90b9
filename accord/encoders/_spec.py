"""Specifications: frozen values that describe a network to build, and that convert to JSON and back."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from accord.errors import OptionError

Self = TypeVar("Self", bound="Spec")

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "elu": functional.elu,
    "gelu": functional.gelu,
    "leaky_relu": functional.leaky_relu,
    "relu": torch.relu,
    "tanh": torch.tanh,
}
NORMALISATIONS = (None, "layer")


class Spec:
    """Base of encoder and scorer specifications: frozen dataclasses of plain values with a `kind`."""

    kind: ClassVar[str] = ""  # its name in JSON; empty for base classes

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check = CHECKS.get(name)
            if check is not None:
                reason = check(value)
                if reason:
                    raise OptionError(f"{type(self).__name__}: {name}={value!r}; {reason}.")

    def to_config(self) -> dict[str, Any]:
        """The kind and all options as plain JSON values."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {"kind": self.kind, **values}

    @classmethod
    def from_config(cls: type[Self], config: Mapping[str, Any]) -> Self:
        """The specification whose `to_config` returned `config`; its kind is this class or one derived from it."""
        kinds = {spec.kind: spec for spec in _derived_classes(cls) if spec.kind}
        if not isinstance(config, Mapping) or config.get("kind") not in kinds:
            named = config.get("kind") if isinstance(config, Mapping) else config
            raise OptionError(f"{cls.__name__}.from_config: kind {named!r} is unknown. Known: {sorted(kinds)}.")
        spec = kinds[config["kind"]]
        known = {field.name for field in fields(spec)}  # type: ignore[arg-type]
        unknown = sorted(set(config) - known - {"kind"})
        if unknown:
            raise OptionError(f"{spec.__name__}.from_config: {unknown} are unknown. Options: {sorted(known)}.")
        values = {name: tuple(value) if isinstance(value, list) else value for name, value in config.items()}
        values.pop("kind")
        return spec(**values)


def _derived_classes(spec: type[Self]) -> list[type[Self]]:
    """The class itself, and all that derive from it."""
    return [spec, *(found for child in spec.__subclasses__() for found in _derived_classes(child))]


# Checks return the reason why a value is wrong, or "".


def _check_count(value: object) -> str:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return "" if good else "it must be a whole number, 1 or more"


def _check_dropout(value: object) -> str:
    good = isinstance(value, (int, float)) and 0.0 <= value < 1.0
    return "" if good else "a dropout probability is at least 0 and less than 1"


def _check_choice(choices: tuple[object, ...]) -> Callable[[object], str]:
    return lambda value: "" if value in choices else f"choose one of {list(choices)}"


def _check_heads(value: object) -> str:
    good = isinstance(value, tuple) and len(value) > 0 and not any(map(_check_count, value))
    return "" if good else "give a tuple with the number of heads of each layer"


CHECKS: dict[str, Callable[[Any], str]] = {  # by the name of an option, which means the same in every specification
    "activation": _check_choice(tuple(ACTIVATIONS)),
    "alpha": lambda value: "" if 0.0 <= value <= 1.0 else "it must lie between 0 and 1",
    "attention_dropout": _check_dropout,
    "depth": _check_count,
    "dropout": _check_dropout,
    "edge_dropout": _check_dropout,
    "heads": _check_heads,
    "hidden": lambda value: "" if value is None else _check_count(value),
    "input_dropout": _check_dropout,
    "last_dropout": _check_dropout,
    "layers": _check_count,
    "rank": _check_count,
    "normalisation": _check_choice(NORMALISATIONS),
    "theta": lambda value: "" if value >= 0.0 else "it must not be negative",
}
