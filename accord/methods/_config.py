"""Recipes as plain JSON values, and back."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from accord.encoders import encoder_from_config, scorer_from_config
from accord.errors import OptionError
from accord.learning import CombinationGrid, GameOptions, PartOptions, RefinementOptions, TrainingOptions
from accord.methods._recipe import Recipe
from accord.methods._registry import find_method

METHOD = "method"  # the key that holds the method's name
BEFORE: dict[str, dict[str, Any]] = {"spn": {"rule": "score", "shrinkage": 0.0}}  # what recipes without these keys mean
# Fields that are written only where they differ from these values, so that files of earlier versions stay the same.
LATER: dict[str, Any] = {"edge_inputs": False, "edge_level": "edge"}
PLAIN: dict[str, type] = {
    "node": PartOptions,
    "edge": PartOptions,
    "label": PartOptions,
    "training": TrainingOptions,
    "grid": CombinationGrid,
    "refinement": RefinementOptions,
    "game": GameOptions,
}
NAMED = {
    "encoder": encoder_from_config,
    "edge_encoder": encoder_from_config,
    "label_encoder": encoder_from_config,
    "scorer": scorer_from_config,
}


def recipe_to_config(recipe: Recipe) -> dict[str, Any]:
    """A recipe as nested dictionaries of numbers, strings and lists; "method" names the method it is for."""
    config: dict[str, Any] = {METHOD: recipe.method}
    for entry in fields(recipe):
        value = getattr(recipe, entry.name)
        if entry.name in LATER and value == LATER[entry.name]:
            continue
        if entry.name in NAMED:
            value = value.to_config()
        elif entry.name in PLAIN and value is not None:
            value = asdict(value)
        config[entry.name] = value
    return config


def recipe_from_config(config: Mapping[str, Any]) -> Recipe:
    """Build the recipe that `recipe_to_config` wrote; keys that its method does not have are refused."""
    if METHOD not in config:
        raise OptionError(
            'recipe: has no "method". Recipes written before each method had its own are not read; add the method\'s '
            "name and leave out the fields that it does not have."
        )
    kind = find_method(config[METHOD]).recipe_type
    known = [entry.name for entry in fields(kind)]
    values: dict[str, Any] = dict(BEFORE.get(kind.method, {}))
    for name, value in config.items():
        if name == METHOD:
            continue
        _check_key(name, known, f"recipe of method {config[METHOD]!r}")
        if name in NAMED:
            value = NAMED[name](value)
        elif name in PLAIN and value is not None:
            for part in value:
                _check_key(part, [entry.name for entry in fields(PLAIN[name])], f"recipe.{name}")
            value = PLAIN[name](**{key: tuple(v) if isinstance(v, list) else v for key, v in value.items()})
        values[name] = value
    return kind(**values)


def _check_key(key: str, known: list[str], where: str) -> None:
    if key not in known:
        raise OptionError(f"{where}: the key {key!r} is unknown. Known keys: {', '.join(known)}.")
