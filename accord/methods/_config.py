"""Recipes as plain JSON values, and back."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from accord.encoders import encoder_from_config, scorer_from_config
from accord.learning import CombinationGrid, GameOptions, PartOptions, RefinementOptions, TrainingOptions
from accord.methods._recipe import Recipe

PLAIN = {
    "node": PartOptions,
    "edge": PartOptions,
    "training": TrainingOptions,
    "grid": CombinationGrid,
    "refinement": RefinementOptions,
    "game": GameOptions,
}
NAMED = {"encoder": encoder_from_config, "edge_encoder": encoder_from_config, "scorer": scorer_from_config}


def recipe_to_config(recipe: Recipe) -> dict[str, Any]:
    """A recipe as nested dictionaries of numbers, strings and lists."""
    config: dict[str, Any] = {}
    for entry in fields(recipe):
        value = getattr(recipe, entry.name)
        if entry.name in NAMED:
            value = value.to_config()
        elif entry.name in PLAIN and value is not None:
            value = asdict(value)
        config[entry.name] = value
    return config


def recipe_from_config(config: Mapping[str, Any]) -> Recipe:
    """The recipe that such dictionaries stand for."""
    values: dict[str, Any] = {}
    for name, value in config.items():
        if name in NAMED:
            value = NAMED[name](value)
        elif name in PLAIN and value is not None:
            value = PLAIN[name](**{key: tuple(v) if isinstance(v, list) else v for key, v in value.items()})
        values[name] = value
    return Recipe(**values)
