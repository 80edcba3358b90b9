"""Recipes as plain JSON values, and back."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from accord.encoders import encoder_from_config, scorer_from_config
from accord.encoders.scorers.triangles import TriangleScorerSpec
from accord.errors import OptionError
from accord.field import Transitions
from accord.learning import CombinationGrid, GameOptions, PartOptions, RefinementOptions, TrainingOptions
from accord.learning.selection import TriangleGrid
from accord.methods.recipes._recipe import Recipe, TriangleRecipe
from accord.methods.recipes._registry import find_method

METHOD = "method"  # the key that holds the method's name
TRIANGLES = "triangles"
BEFORE: dict[str, dict[str, Any]] = {"spn": {"rule": "score", "shrinkage": 0.0}}  # what recipes without these keys mean
# Fields that are written only where they differ from these values, so that files of earlier versions stay the same.
LATER: dict[str, Any] = {"edge_inputs": False, "edge_level": "edge", "transitions": None, "triangles": None}
PLAIN: dict[str, type] = {
    "node": PartOptions,
    "edge": PartOptions,
    "label": PartOptions,
    "training": TrainingOptions,
    "grid": CombinationGrid,
    "refinement": RefinementOptions,
    "game": GameOptions,
    "transitions": Transitions,
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
        elif entry.name == TRIANGLES:
            value = _triangles_to_config(value)
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
        elif name == TRIANGLES and value is not None:
            value = _triangles_from_config(value)
        elif name in PLAIN and value is not None:
            value = _plain(PLAIN[name], value, f"recipe.{name}")
        values[name] = value
    return kind(**values)


def _plain(kind: type, value: Mapping[str, Any], where: str) -> Any:
    for part in value:
        _check_key(part, [entry.name for entry in fields(kind)], where)
    return kind(**{key: tuple(v) if isinstance(v, list) else v for key, v in value.items()})


def _triangles_to_config(triangles: TriangleRecipe) -> dict[str, Any]:
    return {
        "encoder": None if triangles.encoder is None else triangles.encoder.to_config(),
        "channels": triangles.channels,
        "scorer": None if triangles.scorer is None else triangles.scorer.to_config(),
        "part": None if triangles.part is None else asdict(triangles.part),
        "grid": asdict(triangles.grid),
    }


def _triangles_from_config(config: Mapping[str, Any]) -> TriangleRecipe:
    read: dict[str, Any] = {
        "encoder": encoder_from_config,
        "scorer": TriangleScorerSpec.from_config,
        "part": lambda value: _plain(PartOptions, value, "recipe.triangles.part"),
        "grid": lambda value: _plain(TriangleGrid, value, "recipe.triangles.grid"),
    }
    for name in config:
        _check_key(name, [entry.name for entry in fields(TriangleRecipe)], "recipe.triangles")
    return TriangleRecipe(
        **{name: value if value is None or name not in read else read[name](value) for name, value in config.items()}
    )


def _check_key(key: str, known: list[str], where: str) -> None:
    if key not in known:
        raise OptionError(f"{where}: the key {key!r} is unknown. Known keys: {', '.join(known)}.")
