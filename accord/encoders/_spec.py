"""Specifications: frozen values that say what to build, and that can be written to JSON and read back."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from accord.errors import InputTypeError, OptionError

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

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check = CHECKS.get(name)
            if check is not None:
                reason = check(value)
                if reason:
                    raise OptionError(f"{type(self).__name__}: {name}={value!r}; {reason}.")

    def to_config(self) -> dict[str, Any]:
        """Plain JSON values, the kind included."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        return {"kind": self.kind, **values}

    @classmethod
    def from_config(cls: type[Self], config: Mapping[str, Any]) -> Self:
        """What `to_config` wrote; called on a base class it finds the kind that is named."""
        kinds = {spec.kind: spec for spec in _family(cls) if spec.kind}
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


def look_up(table: Mapping[str, Self], name_or_spec: object, base: type[Self], what: str) -> Self:
    """A specification as it is, or the one that the table has under this name."""
    if isinstance(name_or_spec, base):
        return name_or_spec
    if isinstance(name_or_spec, type) and issubclass(name_or_spec, Spec):
        raise InputTypeError(f"{what} is the class {name_or_spec.__name__}. Pass an object: {name_or_spec.__name__}().")
    if not isinstance(name_or_spec, str):
        raise InputTypeError(f"{what} is a {type(name_or_spec).__name__}. Pass one of {sorted(table)} or an object.")
    if name_or_spec.lower() not in table:
        raise OptionError(f"{what} {name_or_spec!r} is unknown. Choose one of {sorted(table)}.")
    return table[name_or_spec.lower()]


def _family(spec: type[Self]) -> list[type[Self]]:
    return [spec, *(found for child in spec.__subclasses__() for found in _family(child))]


def _whole(value: object) -> str:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return "" if good else "it must be a whole number, 1 or more"


def _chance(value: object) -> str:
    good = isinstance(value, (int, float)) and 0.0 <= value < 1.0
    return "" if good else "a dropout probability is at least 0 and less than 1"


def _choice(choices: tuple[object, ...]) -> Callable[[object], str]:
    return lambda value: "" if value in choices else f"choose one of {list(choices)}"


def _heads(value: object) -> str:
    good = isinstance(value, tuple) and len(value) > 0 and not any(map(_whole, value))
    return "" if good else "give a tuple with the number of heads of each layer"


CHECKS: dict[str, Callable[[Any], str]] = {
    "activation": _choice(tuple(ACTIVATIONS)),
    "alpha": lambda value: "" if 0.0 <= value <= 1.0 else "it must lie between 0 and 1",
    "attention_dropout": _chance,
    "depth": _whole,
    "dropout": _chance,
    "edge_dropout": _chance,
    "heads": _heads,
    "hidden": lambda value: "" if value is None else _whole(value),
    "input_dropout": _chance,
    "layers": _whole,
    "normalisation": _choice(NORMALISATIONS),
    "theta": lambda value: "" if value >= 0.0 else "it must not be negative",
}
