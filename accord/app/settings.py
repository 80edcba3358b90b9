"""Settings of `accord fit`, from a TOML file and from flags; flags take precedence."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from accord.encoders import encoder_spec, scorer_spec
from accord.errors import AccordError, DataNotFoundError, OptionError
from accord.methods import LATER, Recipe, recipe_from_config, recipe_to_config
from accord.tuning import read_recipe

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SPEC_OF_NAME = {  # fields of a recipe that a name can set
    "encoder": encoder_spec,
    "edge_encoder": encoder_spec,
    "label_encoder": encoder_spec,
    "scorer": scorer_spec,
}


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """All settings of a run; `recipe` replaces single values of the preset's recipe, or of the whole one given."""

    method: str = "spn"
    encoder: str = "auto"  # gcnii for a benchmark, else chosen on validation data
    edge_encoder: str | None = None
    refine: bool = False
    level: str | None = None  # None: the benchmark's level, "node" for other data
    max_epochs: int | None = None
    seed: int = 0
    preset: str = "accord"
    features: str = "auto"  # the preset's treatment for the benchmark, else raw
    accelerator: str = "auto"
    devices: int | None = None  # processes of each machine; None: as many as a launcher has started, else one
    nodes: int | None = None  # machines; None: as many as a launcher uses, else one
    ensemble: int = 1
    refit: bool = False
    order: int = 2  # 3: with triangles
    class_weight: str | None = None  # "balanced", or numbers by state as `by_state` reads them
    unlabelled: str | None = None  # a folder of graphs whose labels are not read
    start: str | None = None  # a run or saved model that training goes on from
    word_vectors: str | None = None  # an .npz, for graphs with tokens
    recipe: Mapping[str, Any] = field(default_factory=dict)
    whole_recipe: Mapping[str, Any] = field(default_factory=dict)  # of a recipe file, in place of the preset's

    def plain(self) -> dict[str, Any]:
        """The settings as JSON values; what later versions added is left out where it has its usual value."""
        usual = {"order": 2, "devices": None, "nodes": None}
        return {name: value for name, value in asdict(self).items() if name not in usual or value != usual[name]}


WHOLE_NUMBERS = ("max_epochs", "seed", "ensemble", "order", "devices", "nodes")
KEYS = tuple(entry.name for entry in fields(FitSettings) if entry.name != "whole_recipe")  # of a TOML file
RECIPE_SETS = ("encoder", "edge_encoder", "preset", "refine")  # flags that a recipe file leaves no room for


def read_settings(config: Path | None, flags: Mapping[str, Any], overrides: Iterable[str] = ()) -> FitSettings:
    """Settings from a file, replaced by flags that were given, replaced by `--set key=value`.

    Args:
        config: a TOML file, or None.
        flags: key -> value, None for a flag that was not given.
        overrides: single values of the recipe, such as "node.learning_rate=0.01".
    """
    values = {} if config is None else read_config(config)
    values |= {key: value for key, value in flags.items() if value is not None}
    recipe = dict(values.get("recipe", {}))
    for override in overrides:
        recipe = _with_value(recipe, *_parse_override(override))
    return FitSettings(**(values | {"recipe": recipe}))


def read_recipe_flags(path: Path, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags with what a recipe file sets; method and features may be given in spite of it."""
    for name in RECIPE_SETS:
        if flags.get(name) is not None:
            raise OptionError(f"--recipe sets the whole recipe. Leave out --{name.replace('_', '-')}, or use --set.")
    tuned = read_recipe(path)
    own = {"method": tuned.method, "features": tuned.features, "encoder": tuned.recipe.encoder.kind}
    given = {name: value for name, value in flags.items() if value is not None}
    return {**own, **given, "whole_recipe": recipe_to_config(tuned.recipe)}


def by_state(text: str, names: Sequence[str] | None, option: str) -> dict[str | int, float] | list[float]:
    """Numbers by state, from "fraud=20,other=1", or from a list with one for each state: "1,20".

    Args:
        text: as it was given.
        names: of the states; without names, states are numbers.
        option: for messages.
    """
    found: dict[str | int, float] = {}
    values: list[float] = []
    for entry in text.split(","):
        key, sign, number = (word.strip() for word in entry.rpartition("="))
        try:
            value = float(number)
        except ValueError as error:
            raise OptionError(f"{option} {text!r}: {number!r} is not a number. Write, e.g., fraud=20.") from error
        if not sign:
            values.append(value)
        else:
            found[int(key) if key.isdecimal() and key not in (names or ()) else key] = value
    if found and values:
        raise OptionError(f"{option} {text!r}: give a state with every number (fraud=20), or with none.")
    return found or values


def class_weight(text: str | None, names: Sequence[str] | None) -> Any:
    """The `class_weight` of a `NodeClassifier`, from text."""
    if text is None or "=" not in text and "," not in text:
        return text
    return by_state(text, names, "class weight")


def threshold(text: str, names: Sequence[str] | None) -> Any:
    """The `threshold` of `NodeClassifier.predict`, from text; with two states a number is enough."""
    found = by_state(text, names, "--threshold")
    return found[0] if isinstance(found, list) and len(found) == 1 else found


def read_config(path: Path) -> dict[str, Any]:
    """Read a TOML file with keys of `FitSettings`."""
    if not path.is_file():
        raise DataNotFoundError(f"{path}: there is no such file. Give a TOML file with any of {', '.join(KEYS)}.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: is not valid TOML ({error}). Correct the file.") from error
    for key, value in values.items():
        if key not in KEYS:
            raise OptionError(
                f"{path}: the key {key!r} is unknown. Known keys: {', '.join(KEYS)}; single values of the recipe go "
                "under [recipe]."
            )
        wanted: type = {"recipe": dict, "refine": bool, "refit": bool}.get(key, int if key in WHOLE_NUMBERS else str)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            name = {dict: "a table", bool: "true or false", int: "a whole number", str: "text in quotes"}[wanted]
            raise OptionError(f"{path}: {key} is {value!r}, but {name} is needed. Correct the file.")
    return values


def override_recipe(recipe: Recipe, overrides: Mapping[str, Any]) -> Recipe:
    """A recipe with single values replaced; a name replaces a whole encoder or scorer."""
    config = recipe_to_config(recipe)
    known = {key: value for key, value in {**config, **LATER, **config}.items() if key != "method"}
    for key, value in overrides.items():
        _check_key(key, known, f"recipe of method {recipe.method!r}")
        config[key] = _overridden(key, known[key], value)
    try:
        return recipe_from_config(config)
    except AccordError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise OptionError(
            f"recipe: a value has the wrong type ({error}). The config.json of a run shows a valid recipe."
        ) from error


def _overridden(key: str, before: Any, value: Any) -> Any:
    if key in SPEC_OF_NAME:
        if not isinstance(value, str | Mapping):
            raise OptionError(f"recipe.{key}: is {value!r}, but a name is needed. Give one, or set one of its parts.")
        value = {"kind": value} if isinstance(value, str) else dict(value)
        if "kind" in value:
            named = SPEC_OF_NAME[key](value.pop("kind")).to_config()  # ignores case and knows other names
            before = before if named["kind"] == before["kind"] else named
    if not isinstance(before, dict):
        return value
    if not isinstance(value, Mapping):
        raise OptionError(f"recipe.{key}: is {value!r}, but has parts: {', '.join(before)}. Set one of them.")
    for part in value:
        _check_key(part, before, f"recipe.{key}")
    return before | dict(value)


def _check_key(key: str, known: Mapping[str, Any], where: str) -> None:
    if key not in known:
        raise OptionError(f"{where}: the key {key!r} is unknown. Known keys: {', '.join(known)}.")


def _parse_override(override: str) -> tuple[list[str], Any]:
    """Split "node.learning_rate=0.01" into (["node", "learning_rate"], 0.01)."""
    key, sign, text = override.partition("=")
    if not sign or not key.strip():
        raise OptionError(f"--set {override!r}: write key=value, for example node.learning_rate=0.01.")
    path = key.strip().removeprefix("recipe.").split(".")
    if len(path) > 2:
        raise OptionError(f"--set {override!r}: a key has at most two parts, for example node.learning_rate.")
    text = text.strip()
    if text.lower() == "none":
        return path, None
    try:
        return path, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return path, text  # a word without quotes is text


def _with_value(recipe: Mapping[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    """Overrides of a recipe with one more value; a name set before becomes the `kind` of the parts."""
    first = path[0]
    if len(path) == 1:
        return {**recipe, first: value}
    inner = recipe.get(first, {})
    inner = {"kind": inner} if isinstance(inner, str) else inner
    if not isinstance(inner, Mapping):
        raise OptionError(f"recipe.{first}: is {inner!r}, which has no part {path[1]!r}. Set only one of the two.")
    return {**recipe, first: {**inner, path[1]: value}}
