"""Recipe files: a method, its recipe and the treatment of features, as json that people can read and edit."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from accord._files import write_json
from accord.errors import AccordError, DataNotFoundError, InputError
from accord.graphs import TREATMENTS
from accord.methods import METHODS, Recipe, recipe_from_config, recipe_to_config

KEYS = ("method", "features", "recipe")


@dataclass(frozen=True)
class TunedRecipe:
    """Everything that a search has set."""

    method: str
    features: str
    recipe: Recipe


def write_recipe(path: Path, tuned: TunedRecipe) -> None:
    """Write a recipe file, atomically. The device is left open."""
    recipe = replace(tuned.recipe, training=replace(tuned.recipe.training, accelerator="auto"))
    write_json(path, {"method": tuned.method, "features": tuned.features, "recipe": recipe_to_config(recipe)})


def read_recipe(path: str | Path) -> TunedRecipe:
    """Read what `write_recipe` wrote; a file with other content is refused."""
    path = Path(path)
    if not path.is_file():
        raise DataNotFoundError(f"{path}: there is no such recipe file. Give one that `accord tune` wrote.")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict) or set(values) != set(KEYS):
            raise InputError(f"{path}: not a recipe file. It must have the keys {', '.join(KEYS)}.")
        method, features = values["method"], values["features"]
        if method not in METHODS or features not in TREATMENTS:
            raise InputError(
                f"{path}: method {method!r} or features {features!r} is unknown. Methods are {', '.join(METHODS)}, "
                f"features are {', '.join(TREATMENTS)}."
            )
        recipe = recipe_from_config(values["recipe"])
    except AccordError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: not a recipe file ({type(error).__name__}: {error}). Correct the file.") from error
    if not isinstance(recipe, METHODS[method].recipe_type):
        raise InputError(f"{path}: the recipe is for method {recipe.method!r}, not for {method!r}. Correct the file.")
    return TunedRecipe(method, features, recipe)
